"""Waiting for what nothing tells of: the processor is left to others between two looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

PATIENCE_S = 60.0
TICK_S = 0.02


def until(holds: Callable[[], bool]) -> None:
    """Look until it holds. Raises AssertionError: it does not, for a minute."""
    end, tick = time.monotonic() + PATIENCE_S, Event()
    while not holds():
        assert time.monotonic() < end, "it never came to be"
        tick.wait(TICK_S)
