"""A process's memory: what the garbage collector looks at, and what the allocator keeps."""

from __future__ import annotations

import ctypes
import gc

LARGE = 128 << 10
"""Bytes: glibc's own first threshold, which it raises to the size of what was freed last."""
_M_MMAP_THRESHOLD = -3


def settle_heap() -> None:
    """Leave out of all later collections what is here now, since it stays: a vocabulary and the libraries take the collector a fifth
    of a second, in which a request would wait."""
    gc.collect()
    gc.freeze()


def return_large_blocks() -> None:
    """Have the allocator (glibc) give large blocks back to the system when they are freed: after hundreds of large bodies it would keep
    hundreds of megabytes. Not for engines, whose steps would map the same ones again and again."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
