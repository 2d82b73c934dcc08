"""A process's memory: what the garbage collector looks at, and what the allocator keeps."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

from grammar_service.own_memory import resident_bytes

GROWN_BYTES, RESTED = 128 << 20, 30
"""By which a process grows until all of its garbage is collected, and for how many looks it rests then: a collection takes up to 0.2 s."""
MMAP_THRESHOLD = 128 << 10
"""Bytes: what glibc begins with, before it raises the threshold to the size of the largest block that was freed."""
_M_MMAP_THRESHOLD = -3


YOUNG, MIDDLE, FULL = 700, 10, 1000
"""Python's own thresholds but for the last one, which is 10: with it, 1,800 requests that wait are looked through every few seconds, which
takes 175 ms and finds 400 objects."""


def settle_heap() -> None:
    """Leave out of all later collections what is here now, since it stays: a vocabulary and the libraries take the collector a fifth
    of a second, in which a request would wait. Full collections become rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, FULL)


class HeapWatch:
    """Collects all garbage of a process that has grown: what holds itself, an error and the frames of its traceback, may hold a body."""

    def __init__(self, resident: Callable[[], int] = resident_bytes) -> None:
        self._resident = resident
        self._least = resident()
        self._rest = 0

    def look(self) -> bool:
        """To be called now and then, in the thread whose pauses matter least. Returns whether it has collected."""
        self._rest = max(0, self._rest - 1)
        now = self._resident()
        self._least = min(self._least, now)
        if self._rest or now - self._least <= GROWN_BYTES:
            return False
        gc.collect()
        self._least, self._rest = self._resident(), RESTED
        return True


def unmap_large_blocks() -> None:
    """Let the allocator (glibc) return each large block to the system when it is freed. By default an ingress keeps 400 MiB after a flood
    of large bodies. Not for engines: each of their steps would map the same blocks again."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
