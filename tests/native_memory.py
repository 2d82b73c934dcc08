"""What the C library has handed out to this process: memory that tells a leak where RSS, which a heap's holes keep high, does not."""

from __future__ import annotations

import ctypes

import pytest


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in names]


def handed_out() -> int:
    """Bytes. Skips the test where the C library does not tell."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("this C library does not tell what it has handed out")
    libc.mallinfo2.restype = _MallocInfo
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)
