"""A job's deadline is of processor time: what its child waits for a processor is no fault of the grammar."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.errors import PoolBusy
from grammar_service.limits import Limits
from grammar_service.sandbox.nursery import Nursery
from grammar_service.sandbox.slot import Slot
from grammar_service.sandbox.wire import Job, Payload, Setup
from grammar_service.spec import GrammarKind, GrammarSpec

pytestmark = pytest.mark.asyncio(loop_scope="module")
PLENTY = 1 << 30
PLENTY_S = 120.0
JOB = Job(GrammarSpec(GrammarKind.REGEX, "ab?"), "xgrammar")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def slot(model_folder: Path) -> AsyncIterator[Slot]:
    nursery = Nursery(Setup(str(model_folder), Limits(), PLENTY, PLENTY, 1, os.getpid()), PLENTY_S)
    slot = Slot(nursery, background=True)
    await slot.start()
    yield slot
    nursery.fork_no_more()
    await slot.close()
    await nursery.close()


def stopped(slot: Slot) -> int:
    """The process id of its child."""
    assert slot.pid is not None
    os.kill(slot.pid, signal.SIGSTOP)
    return slot.pid


async def test_a_grammar_is_not_blamed_for_the_time_in_which_its_child_has_no_processor(slot: Slot) -> None:
    pid, started = stopped(slot), time.monotonic()
    asyncio.get_running_loop().call_later(0.5, os.kill, pid, signal.SIGCONT)
    assert isinstance(await slot.run(JOB, 0.3), Payload)
    assert time.monotonic() - started > 0.4
    assert slot.pid == pid


async def test_a_child_that_hangs_is_replaced_and_that_is_no_verdict_on_the_grammar(slot: Slot) -> None:
    pid = stopped(slot)
    with pytest.raises(PoolBusy):
        await slot.run(JOB, 0.1)
    assert isinstance(await slot.run(JOB, PLENTY_S), Payload)
    assert not psutil.pid_exists(pid)
