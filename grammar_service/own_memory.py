"""How much memory this process takes (Linux)."""

from __future__ import annotations

import os
import resource
from functools import lru_cache
from io import FileIO
from pathlib import Path

HUGE_PAGE_BYTES = 2 << 20
"""The most that one page fault makes resident (x86-64, and aarch64 with pages of 4 KiB)."""
NUMPY_HUGE_PAGES = "NUMPY_MADVISE_HUGEPAGE"
"""Unless this is 0, NumPy asks for huge pages for its arrays from 4 MiB on, and the allocator has those for others once the array is freed:
8 MiB then count as 2."""
_PAGE_BYTES = resource.getpagesize()
_THREAD, _usage = resource.RUSAGE_THREAD, resource.getrusage


def address_space_bytes() -> int:
    return _pages(0) * _PAGE_BYTES


def resident_bytes() -> int:
    return _pages(1) * _PAGE_BYTES


class TouchedMemory:
    """How much memory this thread is the first to touch from the making of the object on: what its work makes the process grow by,
    whatever other threads do meanwhile. Memory that the allocator has kept of something else does not count. Costs 1.5 us."""

    __slots__ = ("_faults", "_resident")

    def __init__(self) -> None:
        self._resident = resident_bytes() if _has_huge_pages() else 0
        self._faults = _usage(_THREAD).ru_minflt

    def bytes(self) -> int:
        """Up to now. A fault touches a page, and where there are huge pages, up to 2 MiB."""
        faults = _usage(_THREAD).ru_minflt - self._faults
        least = faults * _PAGE_BYTES
        if not faults or not self._resident:
            return least
        return max(least, min(resident_bytes() - self._resident, faults * HUGE_PAGE_BYTES))


@lru_cache(maxsize=1)
def _has_huge_pages() -> bool:
    """Whether the allocator may get them: by the kernel's setting, by glibc's, by NumPy's, or since it is another one than glibc's."""
    try:
        setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
    except OSError:
        return False
    environment = os.environ
    asks = "hugetlb" in environment.get("GLIBC_TUNABLES", "") or "LD_PRELOAD" in environment or environment.get(NUMPY_HUGE_PAGES) != "0"
    return "[always]" in setting or ("[never]" not in setting and asks)


def _pages(column: int) -> int:
    """See statm in proc(5)."""
    file = _statm(os.getpid())  # held: another thread may have opened one meanwhile, and this one would be closed
    return int(os.pread(file.fileno(), 256, 0).split()[column])


@lru_cache(maxsize=1)
def _statm(_process: int) -> FileIO:
    """Stays open, for a process that has asked once may open nothing later. Who is forked has one of its own."""
    return FileIO("/proc/self/statm")
