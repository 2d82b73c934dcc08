"""Ctrl-C and its kin: they end the wait, and never the tidying up that follows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_EVERY_S = 2.0
ONE_PRESS_S = 1.0


class Interrupts:
    """Inside the `with` block a signal raises KeyboardInterrupt in the main thread, until `mute()`; after it, a signal only
    says that the stop is under way. Signals within a second are one: a process group and its leader often get the same one twice."""

    def __init__(self) -> None:
        self._muted = False
        self._raised_at: float | None = None
        self._earlier: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        self._earlier = {number: signal.getsignal(number) for number in SIGNALS}
        self.arm()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def arm(self) -> None:
        """Needed again after `ray.init`, which sets a handler of its own."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def mute(self) -> None:
        self._muted = True
        self.arm()

    def wait(self, fault: Callable[[], str | None]) -> str:
        """Until a signal comes (KeyboardInterrupt), or `fault` tells why there is nothing left to wait for."""
        # An exception in a signal handler can be lost inside a callback of a foreign library: hence the look at `_raised_at`.
        while self._raised_at is None:
            if reason := fault():
                return reason
            time.sleep(LOOK_EVERY_S)
        raise KeyboardInterrupt

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._muted:
            os.write(2, b"\nstill stopping; this takes some seconds\n")  # `print` may be interrupted by itself here
            return
        now = time.monotonic()
        if self._raised_at is not None and now - self._raised_at < ONE_PRESS_S:
            return
        self._raised_at = now
        raise KeyboardInterrupt
