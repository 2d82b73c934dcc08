"""What is freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import psutil, sys
from grammar_service.heap import unmap_large_blocks
if sys.argv[1] == "settled":
    unmap_large_blocks()
resident = lambda: psutil.Process().memory_info().rss >> 20
bytes(8 << 20)  # freeing it tells the allocator that blocks as large are common
before = resident()
blocks = [(b"1" * (1 << 20), bytearray(2000)) for _ in range(200)]
kept = [small for _, small in blocks[::2]]
del blocks
print(resident() - before)
"""


def kept_mib(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True).stdout)


def test_large_blocks_are_given_back() -> None:
    assert kept_mib("settled") < 20
