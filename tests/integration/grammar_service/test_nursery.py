from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.limits import Limits
from grammar_service.messages import AnswerCheck
from grammar_service.sandbox import Sandbox, SandboxSettings
from grammar_service.sandbox import nursery as nursery_module
from grammar_service.sandbox.child import ChildDied
from grammar_service.sandbox.nursery import Nursery, Zygote
from grammar_service.sandbox.wire import Job, Setup
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource
from tests.driving import schema_spec
from tests.waiting import TICK_S, until

PLENTY = 1 << 30
START_S = 120.0
JOB = Job(GrammarSpec(GrammarKind.REGEX, "ab?"), "xgrammar")


@pytest.fixture
def setup(model_folder: Path) -> Setup:
    return Setup(TokenizerSource(str(model_folder)), Limits(), PLENTY, PLENTY, 1, os.getpid())


@pytest_asyncio.fixture
async def zygote(setup: Setup) -> AsyncIterator[Zygote]:
    zygote = await Zygote.spawn(setup, START_S)
    yield zygote
    await zygote.kill()


async def test_a_zygote_that_answered_too_late_is_asked_no_more(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    child = await zygote.fork(False, PLENTY)
    process = psutil.Process(child.pid).parent()
    assert process is not None
    process.suspend()
    with monkeypatch.context() as patch:
        patch.setattr(nursery_module, "_ORDER_TIMEOUT_S", 0.05)
        await child.kill()
    process.resume()
    # It would take the answer about the dead child for that about its own.
    with pytest.raises((ChildDied, OSError)):
        await zygote.fork(False, PLENTY)


async def test_a_child_whose_connection_was_reset_is_not_alive(zygote: Zygote) -> None:
    child = await zygote.fork(False, PLENTY)
    process = psutil.Process(child.pid)
    process.suspend()
    running = asyncio.create_task(child.run(JOB))
    await asyncio.to_thread(process.status)  # while the job is sent
    process.kill()  # with the job unread
    with pytest.raises(ChildDied):
        await running
    assert not child.is_alive
    await child.kill()


async def test_a_zygote_that_is_killed_while_it_starts_has_a_successor(setup: Setup) -> None:
    before = set(psutil.Process().children())
    nursery = Nursery(setup, START_S)
    forking = asyncio.create_task(nursery.fork(False))
    try:
        starting: set[psutil.Process] = set()
        async with asyncio.timeout(START_S):
            while not starting:
                await asyncio.sleep(TICK_S)
                starting = set(await asyncio.to_thread(psutil.Process().children)) - before
        starting.pop().kill()
        child = await forking
        assert await child.run(JOB)
        await child.kill()
    finally:
        await nursery.close()


async def test_a_sandbox_that_is_closed_while_children_are_replaced_starts_no_other_zygote(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox, spawn, spawned = Sandbox(model_folder, SandboxSettings(workers=2)), Zygote.spawn, list[Setup]()
    await sandbox.start()

    async def counted(setup: Setup, start_timeout_s: float) -> Zygote:
        spawned.append(setup)
        return await spawn(setup, start_timeout_s)

    monkeypatch.setattr(Zygote, "spawn", counted)
    endless = AnswerCheck(schema_spec({"pattern": "^(a+)+\\1$"}), (f'"{"a" * 60}b"',), START_S)
    idle_s = {pid: psutil.Process(pid).cpu_times().user for pid in sandbox.pids}
    judging = [asyncio.create_task(sandbox.judge(replace(endless, tenant=tenant))) for tenant in ("one", "another")]
    await asyncio.to_thread(until, lambda: sum(psutil.Process(pid).cpu_times().user > idle_s[pid] + 0.05 for pid in idle_s) == 2)
    for each in judging:
        each.cancel()
    await asyncio.gather(*judging, return_exceptions=True)
    await sandbox.close()
    assert not spawned
