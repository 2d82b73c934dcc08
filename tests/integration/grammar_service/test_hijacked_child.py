"""What a compile child could do that a stranger's text has taken over: nothing to files, the network, or other tenants' grammars."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil
import pytest
import pytest_asyncio

from grammar_service.backends import CompiledPayload
from grammar_service.errors import PoolUnavailable
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest
from grammar_service.relaxation import Relax
from grammar_service.resolve import resolve
from grammar_service.sandbox import Sandbox, SandboxSettings
from grammar_service.sandbox.child import MOST_VERDICT_BYTES, ChildDied, CompileChild, Origin
from grammar_service.sandbox.nursery import Nursery
from grammar_service.sandbox.slot import Slot
from grammar_service.sandbox.turns import FairTurns
from grammar_service.sandbox.wire import Job, Judged, Judging, Payload, Resolved, Result, Setup, Task, frame
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEADLINE_S = 20.0
REGEX = GrammarSpec(GrammarKind.REGEX, "ab?")
PER_LINUX, PER_LINUX32 = 0, 8
"""What uname(2) says of the machine goes by this: 32 bits, for which no filter is known here."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(model_folder: Path) -> AsyncIterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", "hf_of_the_operator")
        sandbox = Sandbox(model_folder, SandboxSettings(memory_limit_bytes=1 << 30, workers=1))
        await sandbox.start()
        # A child that has answered is through with what it does first.
        await sandbox.compile(request_of(sandbox, REGEX), DEADLINE_S)
        yield sandbox
    await sandbox.close()


def request_of(sandbox: Sandbox, spec: GrammarSpec, tenant: str = "") -> CompileRequest:
    return resolve(spec, Limits(), sandbox.fingerprint).request(tenant)


def of_process(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")


def opened_by(pid: int) -> list[str]:
    return sorted(link.readlink().name.split(":")[0] for link in Path(f"/proc/{pid}/fd").iterdir())


async def test_the_kernel_lets_it_open_nothing(sandbox: Sandbox) -> None:
    told = dict(line.split(":\t", 1) for line in of_process(sandbox.pids[-1], "status").splitlines() if ":\t" in line)
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")


async def test_it_has_its_connection_and_standard_error_and_tells_its_own_size(sandbox: Sandbox) -> None:
    """The channel that children are ordered by, above all: connections of others come by it."""
    assert opened_by(sandbox.pids[-1]) == ["null", "pipe", "pipe", "socket", "statm"]


async def test_it_inherits_no_secret(sandbox: Sandbox) -> None:
    zygote = psutil.Process(sandbox.pids[0]).parent()
    assert zygote is not None
    for process in (zygote, psutil.Process(sandbox.pids[0])):
        assert "hf_of_the_operator" not in of_process(process.pid, "environ")


async def test_it_works_for_one_tenant_alone(sandbox: Sandbox) -> None:
    await sandbox.compile(request_of(sandbox, REGEX, "one"), DEADLINE_S)
    first = sandbox.pids[-1]
    await sandbox.compile(request_of(sandbox, REGEX, "one"), DEADLINE_S)
    assert sandbox.pids[-1] == first
    await sandbox.compile(request_of(sandbox, REGEX, "other"), DEADLINE_S)
    assert sandbox.pids[-1] != first
    assert not psutil.pid_exists(first)


class Hijacked(Slot):
    """Answers each job as its taker-over likes."""

    def __init__(self, answer: Result) -> None:
        super().__init__(Nursery(Setup(TokenizerSource(""), Limits(), 0, 0, 1, os.getpid()), 1.0), background=False)
        self._answer = answer

    async def run(self, job: Task, deadline_s: float, tenant: str = "") -> Result:
        return self._answer


def hijacked(sandbox: Sandbox, answer: Result) -> Sandbox:
    other = Sandbox("", SandboxSettings(workers=1))
    other.fingerprint = sandbox.fingerprint
    other._turns = FairTurns([Hijacked(answer)], 8, lambda: 0.0)
    return other


@pytest.mark.parametrize("told", [None, "root ::= written"])
@pytest.mark.parametrize("key", [None, "another's"])
async def test_it_cannot_say_what_its_tables_are_for(sandbox: Sandbox, told: str | None, key: str | None) -> None:
    """No key is right only where it was told what to compile, by whom has found the key."""
    other = hijacked(sandbox, Payload(key, CompiledPayload(b"tables")))
    request = replace(request_of(sandbox, REGEX), backend="xgrammar", library_source=told)
    if told is not None and key is None:
        assert (await other.compile(request, DEADLINE_S)).data == b"tables"
        return
    with pytest.raises(PoolUnavailable, match="key"):
        await other.compile(request, DEADLINE_S)


OWN = GrammarSpec(GrammarKind.JSON_SCHEMA, '{"type": "string"}')
ANOTHERS = GrammarSpec(GrammarKind.JSON_SCHEMA, '{"type": "integer"}')


def told_of(sandbox: Sandbox, spec: GrammarSpec, **otherwise: Any) -> Resolved:
    found = resolve(spec, Limits(), sandbox.fingerprint)
    told = Resolved(found.key, found.backend, found.stopgap, "written by the child", found.warnings)
    return msgspec.structs.replace(told, **otherwise)


async def test_what_it_resolves_has_the_keys_of_what_it_was_asked_about(sandbox: Sandbox) -> None:
    told = told_of(sandbox, OWN)
    assert (await hijacked(sandbox, told).resolve(OWN, DEADLINE_S, "")).key == told.key
    victim = told_of(sandbox, ANOTHERS)
    assert told.stopgap is not None
    lies: list[dict[str, Any]] = [
        {"key": victim.key},
        {"stopgap": victim.stopgap},
        {"stopgap": replace(told.stopgap, backend=told.backend)},
        {"backend": "llguidance"},
        {"backend": "none of ours"},
    ]
    for lie in lies:
        with pytest.raises(PoolUnavailable, match="compile child tells"):
            await hijacked(sandbox, msgspec.structs.replace(told, **lie)).resolve(OWN, DEADLINE_S, "")


@pytest.mark.parametrize("told", [Judged((None,)), Payload("key", CompiledPayload(b"tables")), Judged((None,) * MOST_VERDICT_BYTES)])
async def test_an_answer_of_another_kind_is_none(told: Result) -> None:
    """Nor is one that its parent would take long to read."""
    ours, its = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    _, child = await asyncio.open_connection(sock=its)
    child.write(frame(told))
    task: Task = Job(OWN, None) if told != Judged((None,) * MOST_VERDICT_BYTES) else Judging(OWN, ())
    with pytest.raises(ChildDied):
        await CompileChild(0, reader, writer, cast(Origin, None), output_limit_bytes=1 << 30).run(task)
    for one in (writer, child):
        one.close()


async def test_it_cannot_say_that_a_grammar_stands_for_anothers(sandbox: Sandbox) -> None:
    lie = told_of(sandbox, ANOTHERS, relaxed=ANOTHERS)
    relaxed = msgspec.structs.replace(lie, left_out=("/type",))
    regex = told_of(sandbox, REGEX, relaxed=REGEX, left_out=("/type",))
    for told, relax in ((relaxed, Relax.NOTHING), (lie, Relax.UNENFORCED), (regex, Relax.UNENFORCED)):
        with pytest.raises(PoolUnavailable, match="another grammar"):
            await hijacked(sandbox, told).resolve(OWN, DEADLINE_S, "", relax)


async def test_where_the_kernel_knows_no_filter_it_is_said_once_and_all_goes_on(
    model_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    personality = ctypes.CDLL(None, use_errno=True).personality
    sandbox = Sandbox(model_folder, SandboxSettings(memory_limit_bytes=1 << 30, workers=1))
    try:
        assert personality(PER_LINUX32) != -1
        with caplog.at_level(logging.WARNING, "grammar_service.sandbox"):
            await sandbox.start()
            zygote = psutil.Process(sandbox.pids[0]).parent()
            assert zygote is not None
            zygote.kill()
            zygote.wait(10)
            await sandbox.compile(request_of(sandbox, REGEX), DEADLINE_S)
    finally:
        personality(PER_LINUX)
        await sandbox.close()
    (told,) = [record.message for record in caplog.records if "bounds" in record.message]
    assert "no filter of system calls is known for" in told


async def test_a_model_of_the_hub_is_read_without_the_token_of_the_hub(model_folder: Path, tmp_path: Path) -> None:
    """From the hub's cache, as it looks after a download."""
    kept = tmp_path / "models--owner--name"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("0" * 40)
    (kept / "snapshots").mkdir()
    (kept / "snapshots" / ("0" * 40)).symlink_to(model_folder)
    program = """
        import asyncio
        from grammar_service.sandbox import Sandbox

        async def main():
            sandbox = Sandbox("owner/name")
            await sandbox.start()
            print(sandbox.fingerprint)
            await sandbox.close()

        asyncio.run(main())
    """
    hub = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_of_the_operator"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = await asyncio.to_thread(
        subprocess.run, command, env={**os.environ, **hub}, capture_output=True, text=True, timeout=120, check=False
    )
    assert len(done.stdout.strip()) == 64, done.stderr
