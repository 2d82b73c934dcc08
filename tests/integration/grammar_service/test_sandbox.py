from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.backends import backend_named
from grammar_service.errors import CompileFailed, CompileTimeout, GrammarTooLarge, InvalidGrammar, PoolUnavailable, UnsupportedGrammar
from grammar_service.sandbox import Sandbox
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tokenizer import GrammarTokenizer
from tests.driving import accepts, schema_spec

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIMPLE = GrammarSpec(GrammarKind.REGEX, "ab?")
VERY_HEAVY = GrammarSpec(GrammarKind.EBNF, "root ::= " + " | ".join(f'"value number {index} of many"' for index in range(20_000)))
DEADLINE_S = 20.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(model_folder: Path) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(model_folder, None, memory_limit_bytes=1 << 30)
    await sandbox.start()
    yield sandbox
    await sandbox.close()


async def test_compiles_what_the_parent_can_load(sandbox: Sandbox, model_folder: Path) -> None:
    tokenizer = GrammarTokenizer.load(model_folder)
    assert sandbox.fingerprint == tokenizer.fingerprint
    payload = await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)
    assert accepts(backend_named("xgrammar").load(payload, tokenizer), "ab")
    payload = await sandbox.compile(schema_spec({"type": "string", "pattern": "^a$"}), "llguidance", DEADLINE_S)
    assert accepts(backend_named("llguidance").load(payload, tokenizer), '"a"')


async def test_the_compilers_verdict_is_a_grammar_error_and_keeps_the_child(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = sandbox.pid
    with pytest.raises(InvalidGrammar, match="compile"):
        await sandbox.compile(GrammarSpec(GrammarKind.EBNF, "root ::= missing"), "xgrammar", DEADLINE_S)
    with pytest.raises(UnsupportedGrammar) as caught:
        await sandbox.compile(schema_spec({"type": "integer", "multipleOf": 3}), "xgrammar", DEADLINE_S)
    assert caught.value.pointer == "/multipleOf"
    assert sandbox.pid == pid


async def test_a_deadline_kills_the_compile_and_the_sandbox_goes_on(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = sandbox.pid
    started = time.monotonic()
    with pytest.raises(CompileTimeout):
        await sandbox.compile(VERY_HEAVY, "xgrammar", 0.2)
    assert time.monotonic() - started < 2
    assert await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)
    assert sandbox.pid != pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


async def test_a_child_killed_in_the_middle_fails_one_compile_only(sandbox: Sandbox) -> None:
    await sandbox.start()
    pid = sandbox.pid
    assert pid is not None
    compiling = asyncio.create_task(sandbox.compile(VERY_HEAVY, "xgrammar", DEADLINE_S))
    await until_busy(pid)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CompileFailed):
        await compiling
    assert await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)


async def test_a_cancelled_caller_does_not_leave_its_answer_to_the_next(sandbox: Sandbox, model_folder: Path) -> None:
    await sandbox.start()
    pid = sandbox.pid
    assert pid is not None
    compiling = asyncio.create_task(sandbox.compile(VERY_HEAVY, "xgrammar", DEADLINE_S))
    await until_busy(pid)
    compiling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compiling
    payload = await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)
    assert accepts(backend_named("xgrammar").load(payload, GrammarTokenizer.load(model_folder)), "ab")


async def test_the_child_gets_no_secrets_and_no_descriptors_of_the_parent(sandbox: Sandbox, tmp_path: Path) -> None:
    await sandbox.start()
    child = psutil.Process(sandbox.pid)
    assert not [name for name in child.environ() if name.startswith("MASKCAST_")]
    assert child.num_fds() < 20


HOSTILE = {
    "ReDoS": (GrammarKind.REGEX, "(a+)+b"),
    "nested repetition": (GrammarKind.REGEX, "(x{1000}){1000}"),
    "30,000 parentheses": (GrammarKind.EBNF, "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000),
    "left recursion": (GrammarKind.EBNF, 'root ::= root "a" | "b"'),
    "huge repetition": (GrammarKind.EBNF, 'root ::= "a"{1000000000}'),
    "no rule": (GrammarKind.EBNF, "nonsense"),
    "Lark nesting": (GrammarKind.LARK, "start: " + "(" * 30_000 + '"a"' + ")" * 30_000),
    "Lark repetition": (GrammarKind.LARK, 'start: "a"{1000000000}'),
    "Lark repetition of repetitions": (GrammarKind.LARK, 'start: A\nA: (("a"{1000}){1000}){1000}'),
    "Lark doubling": (GrammarKind.LARK, "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(60)) + 'A60: "a"'),
    "Lark with a wide schema": (GrammarKind.LARK, "start: %json " + json.dumps({"enum": list(range(50_000))})),
    "Lark with a long substring": (GrammarKind.LARK, 'start: %regex {"substring_chars": "' + "abc " * 100_000 + '"}'),
    "Lark nonsense": (GrammarKind.LARK, "%%%"),
    "giant maxLength": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "string", "maxLength": 10**9})),
    "giant maxItems": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "array", "items": {"type": "integer"}, "maxItems": 10**9})),
    "giant minLength": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "string", "minLength": 10**8})),
    "nested oneOf": (
        GrammarKind.JSON_SCHEMA,
        json.dumps({"oneOf": [{"oneOf": [{"type": "null"}, {"type": "integer"}]}, {"type": "string"}]}),
    ),
    "items as a list": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "array", "items": [{"type": "null"}]})),
    "awkward names": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "object", "properties": {'"\n\\\u2028': {"type": "null"}}})),
    "nested patterns": (GrammarKind.JSON_SCHEMA, json.dumps({"type": "string", "pattern": "((a{100}){100}){100}"})),
    "impossible recursion": (
        GrammarKind.JSON_SCHEMA,
        json.dumps({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
    ),
    "tag nonsense": (GrammarKind.STRUCTURAL_TAG, json.dumps({"type": "structural_tag", "format": {"type": "nonsense"}})),
    "tag with a schema that is none": (
        GrammarKind.STRUCTURAL_TAG,
        json.dumps({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "array", "items": [1]}}}),
    ),
    "tag in tag in tag": (GrammarKind.STRUCTURAL_TAG, '{"format": ' * 10_000),
    "10,000 tags": (
        GrammarKind.STRUCTURAL_TAG,
        json.dumps({"structures": [{"begin": f"<{index}>", "schema": {}, "end": ">"} for index in range(10_000)], "triggers": ["<"]}),
    ),
    "tags of large grammars": (
        GrammarKind.STRUCTURAL_TAG,
        json.dumps({"format": {"type": "repeat", "min": 9, "max": 99_999, "content": {"type": "regex", "pattern": "(a{1000}b){1000}"}}}),
    ),
    "wide anyOf": (
        GrammarKind.JSON_SCHEMA,
        json.dumps({"anyOf": [{"type": "object", "properties": {f"p{index}": {"type": "string"}}} for index in range(10_000)]}),
    ),
}


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_ends_in_a_grammar_or_a_grammar_error_in_time(name: str, backend: str, sandbox: Sandbox) -> None:
    kind, text = HOSTILE[name]
    await sandbox.start()
    started = time.monotonic()
    with suppress(InvalidGrammar, UnsupportedGrammar, GrammarTooLarge, CompileTimeout, CompileFailed):
        assert await sandbox.compile(GrammarSpec(kind, text), backend, 2.0)
    assert time.monotonic() - started < 4


async def test_the_sandbox_works_after_all_that(sandbox: Sandbox) -> None:
    assert await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)


async def test_too_much_memory_fails_the_compile_and_replaces_the_child(model_folder: Path) -> None:
    sandbox = Sandbox(model_folder, None, memory_limit_bytes=24 << 20)
    try:
        await sandbox.start()
        with pytest.raises(CompileFailed):
            await sandbox.compile(VERY_HEAVY, "xgrammar", 60)
        assert sandbox.replaced == 1
        assert await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)
    finally:
        await sandbox.close()


async def test_a_model_that_is_not_there_makes_the_pool_unavailable(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "none", None, memory_limit_bytes=1 << 30)
    with pytest.raises(PoolUnavailable):
        await sandbox.start()
    await sandbox.close()
    with pytest.raises(PoolUnavailable):
        await sandbox.compile(SIMPLE, "xgrammar", DEADLINE_S)


async def test_the_child_dies_with_a_parent_that_is_killed(model_folder: Path) -> None:
    program = f"""
        import asyncio
        from grammar_service.sandbox import Sandbox

        async def main():
            sandbox = Sandbox({str(model_folder)!r}, None, 1 << 30)
            await sandbox.start()
            print(sandbox.pid, flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    parent = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(await asyncio.to_thread(parent.stdout.readline)))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await asyncio.to_thread(psutil.wait_procs, [child], 10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


async def until_busy(pid: int) -> None:
    """Wait until the child has taken the job: it has burnt processor time since."""
    process = psutil.Process(pid)
    before = sum(process.cpu_times()[:2])
    while sum(process.cpu_times()[:2]) < before + 0.05:
        await asyncio.to_thread(process.cpu_percent, 0.01)
