"""The memory that a thread is the first to touch."""

from __future__ import annotations

import mmap

from grammar_service.own_memory import TouchedMemory

DATA = b"x" * (16 << 20)


def test_what_is_touched_first_is_counted_where_somebody_has_asked_for_huge_pages() -> None:
    """As NumPy does for its arrays, whose memory others get afterwards."""
    with mmap.mmap(-1, 2 * len(DATA), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block.madvise(mmap.MADV_HUGEPAGE)
        memory = TouchedMemory()
        block.write(DATA)
        once = memory.bytes()
        block.seek(0)
        block.write(DATA)
        assert len(DATA) <= once <= memory.bytes() < 2 * len(DATA)
