"""What a reader learns from grammars that it has read from tables."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from grammar_service.backends.xgrammar.cost import DEAR_MS

MOST_MS = 1000.0
MOST_WAITING = 2
"""Few: a process that ends waits for them."""
_LAST = 19
"""The priority behind all others."""


class RuleLearning:
    """Compiles them after all, behind everything else: their dear rules are then in the compiler's cache when the recipe of another grammar
    has them too. Tables leave nothing there.

    One thread; the library compiles without the interpreter's lock. What takes longer than `most_ms` is not learnt, since no sandbox is
    around it here, and what comes while `most_waiting` are to be learnt is passed over.
    """

    def __init__(self, most_ms: float = MOST_MS, most_waiting: int = MOST_WAITING) -> None:
        self._most_ms = most_ms
        self._room = threading.Semaphore(most_waiting)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rules", initializer=_give_way)

    def learn(self, compile: Callable[[], object], compile_ms: float) -> None:  # noqa: A002
        """Call `compile` some time, if what took `compile_ms` elsewhere has dear rules. Its errors are nobody's: the tables were read."""
        if DEAR_MS <= compile_ms <= self._most_ms and self._room.acquire(blocking=False):
            self._thread.submit(compile).add_done_callback(lambda _: self._room.release())


def _give_way() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LAST)
