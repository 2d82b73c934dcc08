"""A process's memory: what the garbage collector looks at, and what the allocator keeps."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

from grammar_service.own_memory import resident_bytes

COLLECT_AFTER_BYTES, CHECKS_BETWEEN_COLLECTIONS = 128 << 20, 30
"""Growth of the process that triggers a full collection, and the least number of checks between two: each takes up to 0.3 s."""
TRIM_AFTER_BYTES, CHECKS_BETWEEN_TRIMS = 64 << 20, 20
"""Growth of the process beyond its smallest size from which on free pages are returned, and the checks between two such returns. After
1,792 clients with large bodies an ingress kept 107 MiB of free pages. Returning them takes 12 ms, and 0.2 ms where there are none."""
MMAP_THRESHOLD = 128 << 10
"""Bytes: what glibc begins with, before it raises the threshold to the size of the largest block that was freed."""
_M_MMAP_THRESHOLD = -3


GC_THRESHOLDS = 700, 10, 1000
"""Arguments of `gc.set_threshold`. Python's default for the third is 10. With 1,800 waiting requests, full collections then run every few
seconds, take 175 ms and free 400 objects."""


def settle_heap() -> None:
    """Leave out of all later collections what is here now, since it stays: a vocabulary and the libraries take the collector a fifth
    of a second, in which a request would wait. Also make full collections rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


class HeapWatch:
    """Runs a full collection when the process has grown, because reference cycles may keep request bodies, and returns the allocator's free
    pages. `held_bytes` tells how much of the growth is in use."""

    def __init__(self, resident: Callable[[], int] = resident_bytes) -> None:
        self.held_bytes: Callable[[], int] = lambda: 0
        self._resident = resident
        self._smallest = self._after_collection = resident()
        self._checks = self._checks_to_skip = 0

    def check(self) -> bool:
        """Call it periodically. Returns whether it has collected."""
        self._checks += 1
        self._checks_to_skip = max(0, self._checks_to_skip - 1)
        now = self._resident()
        self._smallest, self._after_collection = min(self._smallest, now), min(self._after_collection, now)
        unheld = now - self.held_bytes()
        if self._checks % CHECKS_BETWEEN_TRIMS == 0 and unheld - self._smallest > TRIM_AFTER_BYTES:
            trim_heap()
        if self._checks_to_skip or unheld - self._after_collection <= COLLECT_AFTER_BYTES:
            return False
        gc.collect()
        self._after_collection, self._checks_to_skip = self._resident(), CHECKS_BETWEEN_COLLECTIONS
        return True


def trim_heap() -> None:
    """Return the allocator's (glibc's) free pages to the system."""
    ctypes.CDLL(None).malloc_trim(0)


def unmap_large_blocks() -> None:
    """Let the allocator (glibc) return each large block to the system when it is freed. By default an ingress keeps 400 MiB after a flood
    of large bodies. Not for engines: each of their steps would map the same blocks again."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
