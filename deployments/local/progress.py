"""What a waiting user sees: the step that runs, for how long, and what it is busy with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

TICK_S = 1.0
LINE_EVERY_S = 15.0


class Progress:
    """On a terminal one line that moves; elsewhere a plain line when something changes, and now and then when nothing does."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock

    @contextmanager
    def step(self, text: str, detail: Callable[[], str] = str) -> Iterator[None]:
        """Shows `text` while the block runs; `detail` is called in a thread of its own, about once a second."""
        started, done = self._clock(), threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, detail, started, done), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join(TICK_S * 5)
        self.say(f"{text}: done in {self._clock() - started:.0f} s")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _tick(self, text: str, detail: Callable[[], str], started: float, done: threading.Event) -> None:
        if self._console.is_terminal:
            with self._console.status(text) as status:
                self._tick_terminal(status, text, detail, started, done)
        else:
            self._tick_lines(text, detail, started, done)

    def _tick_terminal(self, status: Status, text: str, detail: Callable[[], str], started: float, done: threading.Event) -> None:
        while not done.wait(TICK_S):
            status.update(_line(text, detail(), self._clock() - started))

    def _tick_lines(self, text: str, detail: Callable[[], str], started: float, done: threading.Event) -> None:
        self.say(f"{text} ...")
        shown, shown_at = "", started
        while not done.wait(TICK_S):
            now, busy_with = self._clock(), detail()
            if busy_with != shown or now - shown_at >= LINE_EVERY_S:
                self.say(f"  {_line(text, busy_with, now - started)}")
                shown, shown_at = busy_with, now


def _line(text: str, busy_with: str, seconds: float) -> str:
    return f"{text}, {seconds:.0f} s" + (f": {busy_with}" if busy_with else "")
