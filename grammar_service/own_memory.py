"""How much memory this process takes (Linux)."""

from __future__ import annotations

import os
import resource
from functools import lru_cache
from io import FileIO


def address_space_bytes() -> int:
    return _pages(0) * resource.getpagesize()


def resident_bytes() -> int:
    return _pages(1) * resource.getpagesize()


def page_faults() -> int:
    """Pages that this thread has been the first to touch, since it began: what a block of code makes the process grow by, whatever other
    threads do meanwhile. Memory that the allocator has kept of something else does not count."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def _pages(column: int) -> int:
    """See statm in proc(5)."""
    return int(os.pread(_statm(os.getpid()).fileno(), 256, 0).split()[column])


@lru_cache(maxsize=1)
def _statm(_process: int) -> FileIO:
    """Stays open, for a process that has asked once may open nothing later. Who is forked has one of its own."""
    return FileIO("/proc/self/statm")
