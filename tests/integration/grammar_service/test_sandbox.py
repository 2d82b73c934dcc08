from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.backends import CompiledPayload, backend_named, select_backend
from grammar_service.errors import (
    CompileFailed,
    CompileTimeout,
    GrammarTooLarge,
    InvalidGrammar,
    PoolBusy,
    PoolUnavailable,
    UnsupportedGrammar,
)
from grammar_service.key import grammar_key
from grammar_service.limits import Limits, check_size
from grammar_service.messages import AnswerCheck, CompileRequest
from grammar_service.relaxation import Relax
from grammar_service.sandbox import Sandbox, SandboxSettings
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, schema_spec
from tests.hostile_corpus import HOSTILE

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIMPLE = GrammarSpec(GrammarKind.REGEX, "ab?")
HEAVY, VERY_HEAVY = (
    GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"value number {index} of many"' for index in range(values)))
    for values in (4500, 20_000)
)
"""Seconds, and longer than any deadline here."""
DEADLINE_S = 20.0
WIDE = Limits(max_constraint_bytes=1 << 26, max_nesting=100_000, max_choices=1_000_000)
"""So that hostile text gets as far as the compilers."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(model_folder: Path) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(model_folder, SandboxSettings(WIDE, memory_limit_bytes=1 << 30, workers=1))
    await sandbox.start()
    yield sandbox
    await sandbox.close()


async def test_compiles_what_the_parent_can_load(sandbox: Sandbox, model_folder: Path) -> None:
    tokenizer = GrammarTokenizer.load(model_folder)
    assert sandbox.fingerprint == tokenizer.fingerprint
    payload = await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    assert accepts(backend_named("xgrammar").load(payload.data, tokenizer), "ab")
    payload = await compile_in(sandbox, schema_spec({"type": "string", "pattern": "^a$"}), "llguidance", DEADLINE_S)
    assert accepts(backend_named("llguidance").load(payload.data, tokenizer), '"a"')


@pytest.mark.parametrize("links", [1500, 3000])
async def test_a_chain_that_a_child_accepts_has_stack_to_spare_in_a_thread(sandbox: Sandbox, model_folder: Path, links: int) -> None:
    """Such a thread of an engine, whose stack of 8 MiB is enough for 3,500 of them."""
    chain = "".join(f'A{link}: "x" A{link + 1} | "y"\n' for link in range(links))
    spec = GrammarSpec(GrammarKind.LARK, f'start: A0\n{chain}A{links}: "z"\n')
    if links > 2500:
        with pytest.raises(CompileFailed, match="crashed"):
            await compile_in(sandbox, spec, "llguidance", DEADLINE_S)
    else:
        payload = await compile_in(sandbox, spec, "llguidance", DEADLINE_S)
        loaded = await asyncio.to_thread(backend_named("llguidance").load, payload.data, GrammarTokenizer.load(model_folder))
        assert accepts(loaded, "xy")


@pytest.mark.parametrize("spec", [SIMPLE, schema_spec({"type": "string", "maxLength": 4})], ids=["regex", "schema"])
async def test_a_confined_child_compiles_for_canonical_output(sandbox: Sandbox, model_folder: Path, spec: GrammarSpec) -> None:
    spec = replace(spec, canonical=True)
    payload = await compile_in(sandbox, spec, (backend := select_backend(spec)).name, DEADLINE_S)
    loaded = backend.load(payload.data, GrammarTokenizer.load(model_folder))
    assert accepts(loaded, "ab" if spec.kind is GrammarKind.REGEX else '"ab"')


async def test_tables_of_the_tokenizer_are_made_once_for_all_children(sandbox: Sandbox) -> None:
    """Each tenant has a child of its own; the tables take half a second of a processor even for a tiny vocabulary."""
    spec = replace(SIMPLE, canonical=True)
    for tenant in ("another", ""):
        await compile_in(sandbox, spec, select_backend(spec).name, DEADLINE_S, tenant)
        spent = psutil.Process(worker_of(sandbox)).cpu_times()
        assert spent.user + spent.system < 0.3


async def test_a_grammar_may_take_no_more_of_an_engine_than_of_a_child(sandbox: Sandbox) -> None:
    """Of parts that the child has compiled before, the whole compiles there at once; an engine does not have them."""

    def parts(first: int, last: int) -> GrammarSpec:
        rules = "\n".join(f'r{n} ::= [^{chr(97 + n)}]{{{n},{400 + n}}} "x"' for n in range(first, last))
        return GrammarSpec(GrammarKind.EBNF, f"root ::= {' | '.join(f'{chr(34)}{n}{chr(34)} r{n}' for n in range(first, last))}\n{rules}")

    costs_ms = [(await compile_in(sandbox, parts(n, n + 3), "xgrammar", DEADLINE_S)).load_ms for n in (0, 3, 6)]
    whole = parts(0, 9)
    assert (await compile_in(sandbox, whole, "xgrammar", DEADLINE_S)).load_ms > max(costs_ms)
    with pytest.raises(CompileTimeout, match="loading"):
        await compile_in(sandbox, whole, "xgrammar", 0.8 * sum(costs_ms) / 1000)


async def test_the_compilers_verdict_is_a_grammar_error_and_keeps_the_child(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = worker_of(sandbox)
    with pytest.raises(InvalidGrammar, match="compile"):
        await compile_in(sandbox, GrammarSpec(GrammarKind.EBNF, "root ::= missing"), "xgrammar", DEADLINE_S)
    with pytest.raises(UnsupportedGrammar) as caught:
        await compile_in(sandbox, schema_spec({"type": "integer", "multipleOf": 3}), "xgrammar", DEADLINE_S)
    assert caught.value.pointer == "/multipleOf"
    assert worker_of(sandbox) == pid


async def test_a_deadline_kills_the_compile_and_the_sandbox_goes_on(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = worker_of(sandbox)
    before = spent_s(sandbox)
    with pytest.raises(CompileTimeout):
        await compile_in(sandbox, VERY_HEAVY, "xgrammar", 0.2)
    assert spent_s(sandbox) - before < 5
    assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    assert worker_of(sandbox) != pid
    assert not psutil.pid_exists(pid)


async def test_answers_are_judged_in_a_child_and_a_pattern_without_end_ends_with_its_deadline(sandbox: Sandbox) -> None:
    assert await sandbox.judge(AnswerCheck(schema_spec({"uniqueItems": True}), ("[1, 2]", "[1, 1]"), DEADLINE_S)) == (
        None,
        "[1, 1] has non-unique elements",
    )
    hostile = AnswerCheck(schema_spec({"pattern": "^(a+)+\\1$"}), (f'"{"a" * 40}b"',), 0.5)
    with pytest.raises(CompileTimeout):
        await sandbox.judge(hostile)
    assert await sandbox.judge(AnswerCheck(schema_spec(True), ("1",), DEADLINE_S)) == (None,)


async def test_a_schema_is_relaxed_in_a_child(sandbox: Sandbox) -> None:
    asked = schema_spec({"type": "string", "pattern": "^(a)\\1$"})
    with pytest.raises(UnsupportedGrammar):
        await sandbox.resolve(asked, DEADLINE_S, "")
    found = await sandbox.resolve(asked, DEADLINE_S, "", relax=Relax.UNENFORCED)
    assert (found.left_out, found.spec) == (("/pattern",), schema_spec_of('{"type":"string"}'))
    exact = schema_spec({"type": "string"})
    assert (await sandbox.resolve(exact, DEADLINE_S, "", relax=Relax.UNENFORCED)).spec == exact


async def test_what_only_a_library_refuses_goes_where_that_is_asked_for(sandbox: Sandbox) -> None:
    """Which names match both is too hard a question for it."""
    asked = schema_spec({"type": "object", "patternProperties": {"^.*$": {"type": "integer"}, "secret": False}})
    found = await sandbox.resolve(asked, DEADLINE_S, "", relax=Relax.UNENFORCED)
    assert found.left_out == ()
    with pytest.raises(UnsupportedGrammar):
        await sandbox.compile(found.request(), DEADLINE_S)
    less = await sandbox.resolve(asked, DEADLINE_S, "", relax=Relax.UNCOMPILED)
    assert less.left_out == ("/patternProperties",)
    assert (await sandbox.compile(less.request(), DEADLINE_S)).data


def schema_spec_of(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, text)


async def test_a_job_that_a_dying_child_was_given_is_done_by_its_successor(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = worker_of(sandbox)
    os.kill(pid, signal.SIGKILL)
    # At once: the event loop has not seen the end of the connection.
    assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    assert worker_of(sandbox) != pid


async def test_a_job_whose_child_is_killed_in_the_middle_is_tried_once_more(sandbox: Sandbox) -> None:
    await sandbox.start()
    compiling = asyncio.create_task(compile_in(sandbox, HEAVY, "xgrammar", DEADLINE_S))
    await kill_when_busy(sandbox)
    assert await compiling


async def test_a_job_that_two_children_died_of_fails_alone(sandbox: Sandbox) -> None:
    await sandbox.start()
    replaced = sandbox.replaced
    compiling = asyncio.create_task(compile_in(sandbox, VERY_HEAVY, "xgrammar", DEADLINE_S))
    await kill_when_busy(sandbox)
    await sandbox.start()
    await kill_when_busy(sandbox)
    with pytest.raises(CompileFailed):
        await compiling
    assert sandbox.replaced == replaced + 2
    assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)


async def test_a_cancelled_caller_does_not_leave_its_answer_to_the_next(sandbox: Sandbox, model_folder: Path) -> None:
    await sandbox.start()
    pid = worker_of(sandbox)
    compiling = asyncio.create_task(compile_in(sandbox, VERY_HEAVY, "xgrammar", DEADLINE_S))
    await until_busy(pid)
    compiling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compiling
    payload = await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    assert accepts(backend_named("xgrammar").load(payload.data, GrammarTokenizer.load(model_folder)), "ab")


async def test_the_child_gets_no_secrets_and_no_descriptors_of_the_parent(sandbox: Sandbox, tmp_path: Path) -> None:
    await sandbox.start()
    child = psutil.Process(worker_of(sandbox))
    assert not [name for name in child.environ() if name.startswith("MASKCAST_")]
    assert child.num_fds() < 20


def spent_s(sandbox: Sandbox) -> float:
    """The processor time of the children, those that have ended included: on a busy machine a clock says little."""
    zygote = psutil.Process(sandbox.pids[0]).parent()
    assert zygote is not None
    ended = zygote.cpu_times()
    living = [child.cpu_times() for child in zygote.children()]
    return ended.children_user + ended.children_system + sum(times.user + times.system for times in living)


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_ends_in_a_grammar_or_a_grammar_error_in_time(name: str, backend: str, sandbox: Sandbox) -> None:
    await sandbox.start()
    before = spent_s(sandbox)
    with suppress(InvalidGrammar, UnsupportedGrammar, GrammarTooLarge, CompileTimeout, CompileFailed, PoolBusy):
        assert await compile_in(sandbox, HOSTILE[name], backend, 2.0)
    # Twice, where the child has to be made anew; it takes a while to kill one that holds a gigabyte.
    assert spent_s(sandbox) - before < 10


async def test_the_sandbox_works_after_all_that(sandbox: Sandbox) -> None:
    assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)


async def test_too_much_memory_fails_the_compile_and_replaces_the_child(model_folder: Path) -> None:
    sandbox = Sandbox(model_folder, SandboxSettings(WIDE, memory_limit_bytes=24 << 20, workers=1))
    try:
        await sandbox.start()
        with pytest.raises(CompileFailed):
            await compile_in(sandbox, VERY_HEAVY, "xgrammar", 60)
        assert sandbox.replaced == 1
        assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    finally:
        await sandbox.close()


async def test_a_killed_child_is_replaced_in_a_fraction_of_the_time_that_the_first_one_took(sandbox: Sandbox, model_folder: Path) -> None:
    started = time.monotonic()
    cold = Sandbox(model_folder, SandboxSettings(workers=1))
    await cold.start()
    first = time.monotonic() - started
    await cold.close()
    await sandbox.start()
    os.kill(worker_of(sandbox), signal.SIGKILL)
    started = time.monotonic()
    assert await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)
    assert time.monotonic() - started < first / 2


@pytest.mark.parametrize("seen", [True, False])
async def test_a_dead_zygote_is_replaced_and_no_job_fails(seen: bool, sandbox: Sandbox) -> None:
    await sandbox.start()
    zygote = psutil.Process(worker_of(sandbox)).parent()
    assert zygote is not None
    for process in (zygote, *(psutil.Process(pid) for pid in sandbox.pids)):
        process.kill()
    if seen:
        await asyncio.to_thread(psutil.wait_procs, [zygote], 10)
    for backend in ("llguidance", "xgrammar"):
        assert await compile_in(sandbox, SIMPLE, backend, DEADLINE_S)


async def test_a_quick_backend_does_not_wait_for_a_slow_one(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = worker_of(sandbox)
    slow = asyncio.create_task(compile_in(sandbox, VERY_HEAVY, "xgrammar", DEADLINE_S))
    await until_busy(pid)
    assert await compile_in(sandbox, schema_spec({"type": "integer"}), "llguidance", DEADLINE_S)
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_a_tenants_flood_of_slow_grammars_leaves_the_others_a_worker(model_folder: Path) -> None:
    sandbox = Sandbox(model_folder, SandboxSettings(WIDE, workers=2))
    try:
        await sandbox.start()
        flood = [asyncio.create_task(compile_in(sandbox, VERY_HEAVY, "xgrammar", DEADLINE_S, "flood")) for _ in range(6)]
        await until_busy(sandbox.pids[-1])
        for number in range(5):
            assert await compile_in(sandbox, GrammarSpec(GrammarKind.REGEX, f"calm{number}"), "xgrammar", DEADLINE_S, "calm")
        assert not [task for task in flood if task.done()]
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
    finally:
        await sandbox.close()


async def test_an_output_over_its_limit_is_refused_and_the_child_goes_on(model_folder: Path) -> None:
    sandbox = Sandbox(model_folder, SandboxSettings(output_limit_bytes=2000, workers=1))
    try:
        await sandbox.start()
        pid = worker_of(sandbox)
        lark = GrammarSpec(GrammarKind.LARK, "start: " + " | ".join(f'"number {index}"' for index in range(500)))
        with pytest.raises(GrammarTooLarge, match="limit is 2000"):
            await compile_in(sandbox, lark, "llguidance", DEADLINE_S)
        assert worker_of(sandbox) == pid
    finally:
        await sandbox.close()


async def test_a_model_that_is_not_there_makes_the_pool_unavailable(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "none", SandboxSettings(memory_limit_bytes=1 << 30))
    with pytest.raises(PoolUnavailable):
        await sandbox.start()
    await sandbox.close()
    with pytest.raises(PoolUnavailable):
        await compile_in(sandbox, SIMPLE, "xgrammar", DEADLINE_S)


async def test_the_child_dies_with_a_parent_that_is_killed(model_folder: Path) -> None:
    program = f"""
        import asyncio
        from grammar_service.sandbox import Sandbox

        async def main():
            sandbox = Sandbox({str(model_folder)!r})
            await sandbox.start()
            print(*sandbox.pids, flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    parent = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [psutil.Process(int(pid)) for pid in (await asyncio.to_thread(parent.stdout.readline)).split()]
    zygote = children[0].parent()
    assert zygote is not None
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await asyncio.to_thread(psutil.wait_procs, [zygote, *children], 10)
    assert not [child for child in (zygote, *children) if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


async def compile_in(sandbox: Sandbox, spec: GrammarSpec, backend: str, deadline_s: float, tenant: str = "") -> CompiledPayload:
    check_size(spec, WIDE)
    chosen = backend_named(backend)
    key = grammar_key(spec, chosen.name, chosen.version, sandbox.fingerprint)
    return await sandbox.compile(CompileRequest(spec, key, backend, tenant=tenant), deadline_s)


def worker_of(sandbox: Sandbox) -> int:
    """The process id of the one worker of the sandboxes here."""
    return sandbox.pids[-1]


async def kill_when_busy(sandbox: Sandbox) -> None:
    """Until it has been reaped, so that `start` waits for its successor."""
    child = psutil.Process(worker_of(sandbox))
    await until_busy(child.pid)
    child.kill()
    await asyncio.to_thread(child.wait, 10)


async def until_busy(pid: int) -> None:
    """Wait until the child has taken the job: it has burnt processor time since."""
    process = psutil.Process(pid)
    before = sum(process.cpu_times()[:2])
    async with asyncio.timeout(DEADLINE_S):
        while sum(process.cpu_times()[:2]) < before + 0.05:
            await asyncio.to_thread(process.cpu_percent, 0.01)
