"""Who hangs is told from who is slow, or has no processor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from model_service.hang_watch import SPINNING, HangWatch, Look, ThreadState, main_threads, thread_state
from tests.waiting import until

HANG_S = 10.0


def looks(code: str, cpu: float, seconds: int, *, has_work: bool = True, progress: int = 0, beside: str = "S") -> int | None:
    """After how many seconds a watch tells that two threads hang, of which one is in this state and has so much of a processor."""
    watch = HangWatch(HANG_S)
    for second in range(seconds + 1):
        threads = {1: ThreadState(code, cpu * second), 2: ThreadState(beside, 0.0)}
        if watch.hangs(Look(has_work, progress * second, threads), float(second)):
            return second
    return None


@pytest.mark.parametrize("code", ["S", "D", "T", "t"])
def test_who_waits_or_is_stopped_without_an_end_hangs(code: str) -> None:
    assert looks(code, 0.0, 60) == HANG_S


def test_who_waits_for_one_that_is_stopped_hangs_whatever_it_computes() -> None:
    assert looks("R", 1.0, 60, beside="T") == HANG_S


def test_who_computes_without_progress_hangs_when_it_has_had_a_processor_for_long() -> None:
    assert looks("R", 1.0, 600) == SPINNING * HANG_S
    assert looks("R", 0.1, 350) is None


def test_who_has_no_processor_does_not_hang() -> None:
    assert looks("R", 0.0, 600) is None


def test_who_has_nothing_to_do_or_does_something_does_not_hang() -> None:
    assert looks("S", 0.0, 600, has_work=False) is None
    assert looks("S", 0.0, 600, progress=1) is None


def test_one_step_forgives_all_before_it() -> None:
    watch, waiting = HangWatch(HANG_S), {1: ThreadState("S", 0.0)}
    for second in range(9):
        assert not watch.hangs(Look(True, 0, waiting), float(second))
    assert not watch.hangs(Look(True, 1, waiting), 9.0)
    for second in range(10, 19):
        assert not watch.hangs(Look(True, 1, waiting), float(second))
    assert watch.hangs(Look(True, 1, waiting), 19.0)


def test_who_looks_late_has_not_seen_what_was_between() -> None:
    """A watch that had no processor for a minute says nothing of those that had none either."""
    watch, waiting = HangWatch(HANG_S), {1: ThreadState("S", 0.0)}
    assert not watch.hangs(Look(True, 0, waiting), 0.0)
    assert not watch.hangs(Look(True, 0, waiting), 60.0)


def test_the_state_of_a_process_is_read() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        until(lambda: (state := thread_state(process.pid, process.pid)) is not None and state.code == "R" and state.cpu_s > 0)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: main_threads([process.pid])[process.pid].code == "T")
    finally:
        process.kill()
        process.wait()
    assert main_threads([process.pid]) == {}


def test_the_state_of_a_thread_is_read() -> None:
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    assert thread.native_id is not None
    until(lambda: (state := thread_state(os.getpid(), thread.native_id or 0)) is not None and state.code == "S")
    over.set()
    thread.join()
