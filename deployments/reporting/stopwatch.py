"""Milliseconds of wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` returns, and the milliseconds that it took."""
    started = time.perf_counter()
    result = work()
    return result, ms_since(started)


def ms_since(started: float) -> float:
    """Milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000
