"""Ends a process whose event loop hangs: Ray Serve starts another one in its place. A replica whose every thread is suspended cannot do
so; Ray Serve's own health checks find it."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable

from grammar_service.heap import HeapWatch
from model_service.hang_watch import PERIOD_S, HangWatch, Look, thread_state

HANG_S = 15.0
logger = logging.getLogger(__name__)


def end_process() -> None:
    """With what its threads were doing in the log, and without what a process does in order: that would wait for the loop."""
    faulthandler.dump_traceback(all_threads=True)
    os._exit(1)


class LoopWatch:
    """`end` is called once, in a thread, when the loop has answered nothing for `hang_s` of the time that it could have (`HangWatch`).
    Each beat also checks the `heap`."""

    def __init__(self, hang_s: float = HANG_S, period_s: float = PERIOD_S, end: Callable[[], None] = end_process) -> None:
        self._watch = HangWatch(hang_s)
        self._period_s = period_s
        self._end = end
        self._beats = 0
        self.heap = HeapWatch()
        self._stopped = threading.Event()

    def start(self) -> None:
        """On the loop that is watched."""
        loop, thread = asyncio.get_running_loop(), threading.get_native_id()
        threading.Thread(target=self._run, args=(loop, thread), name="loop watch", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _beat(self) -> None:
        self._beats += 1
        self.heap.check()

    def _run(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        asked = 0
        while not self._stopped.wait(self._period_s):
            if self._beats == asked:
                try:
                    loop.call_soon_threadsafe(self._beat)
                except RuntimeError:  # it is closed
                    return
                asked += 1
            if (state := thread_state(os.getpid(), thread)) is None:
                return
            if self._watch.hangs(Look(True, self._beats, {thread: state}), time.monotonic()):
                logger.error("the event loop answers nothing: this process ends, for another one to take its place")
                self._end()
                return
