"""A job's deadline is of processor time: what its child waits for a processor is no fault of the grammar."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from grammar_service.errors import CompileTimeout, PoolBusy
from grammar_service.limits import Limits
from grammar_service.sandbox.nursery import Nursery
from grammar_service.sandbox.slot import Slot
from grammar_service.sandbox.wire import Job, Judging, Payload, Setup
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource

pytestmark = pytest.mark.asyncio(loop_scope="module")
PLENTY = 1 << 30
PLENTY_S = 120.0
SPIN = "import os\nos.nice(10)\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
ENDLESS = Judging(GrammarSpec(GrammarKind.JSON_SCHEMA, r'{"pattern": "^(a+)+\\1$"}'), (f'"{"a" * 40}b"',))
JOB = Job(GrammarSpec(GrammarKind.REGEX, "ab?"), "xgrammar")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def slot(model_folder: Path) -> AsyncIterator[Slot]:
    nursery = Nursery(Setup(TokenizerSource(str(model_folder)), Limits(), PLENTY, PLENTY, 1, os.getpid()), PLENTY_S)
    slot = Slot(nursery, background=True)
    await slot.start()
    yield slot
    nursery.fork_no_more()
    await slot.close()
    await nursery.close()


async def child_of(slot: Slot) -> int:
    """Its process id."""
    await slot.start()
    assert slot.pid is not None
    return slot.pid


async def stopped(slot: Slot) -> int:
    """The process id of its child, which is suspended."""
    os.kill(pid := await child_of(slot), signal.SIGSTOP)
    return pid


async def test_a_grammar_is_not_blamed_for_the_time_in_which_its_child_has_no_processor(slot: Slot) -> None:
    pid, started = await stopped(slot), time.monotonic()
    asyncio.get_running_loop().call_later(0.5, os.kill, pid, signal.SIGCONT)
    assert isinstance(await slot.run(JOB, 0.3), Payload)
    assert time.monotonic() - started > 0.4
    assert slot.pid == pid


async def test_a_child_that_others_leave_some_hundredths_of_a_processor_is_not_taken_for_one_that_hangs(slot: Slot) -> None:
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(await child_of(slot), {processor})
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", SPIN.format(processor=processor))
    try:
        with pytest.raises(CompileTimeout):
            await slot.run(ENDLESS, 0.05)
    finally:
        other.kill()
        await other.wait()


async def test_a_child_that_hangs_is_replaced_and_that_is_no_verdict_on_the_grammar(slot: Slot) -> None:
    pid = await stopped(slot)
    with pytest.raises(PoolBusy):
        await slot.run(JOB, 0.1)
    assert isinstance(await slot.run(JOB, PLENTY_S), Payload)
    assert not psutil.pid_exists(pid)
