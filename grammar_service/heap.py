"""A process's memory: what the garbage collector looks at, and what the allocator keeps."""

from __future__ import annotations

import ctypes
import gc

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


def unmap_large_blocks() -> None:
    """Let the allocator (glibc) return each large block to the system when it is freed. By default an ingress keeps 400 MiB after a flood
    of large bodies. Not for engines: each of their steps would map the same blocks again."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
