"""How a ring of mask frames lies in its memory, in the machine's own byte order; version 2.

| at | type | what |
|---|---|---|
| 0 | `8s`, `uint64[3]` | magic with the version, number of slots, bytes that a slot holds, whether there are checksums |
| 64 | slots | each `uint64[2]` (mark, checksum), and at byte 64 of it the frame |

Frame s stands in slot s mod slots. Its mark is 2s + 1 while it is written and 2s + 2 from then on; a reader that finds 2s + 2 before and
after copying has copied frame s, whole. How long a frame is, and that it is there, the writer says elsewhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap

from model_service.errors import MemoryUnavailable

MAGIC = b"MCRING\0\2"
LINE = 64
"""A cache line: what the writer changes for one slot is in no line of another."""
CHECKSUM = 1
"""The word of a slot after its mark."""
MOST_BYTES = 1 << 30
"""Of a whole ring: the kernel would sooner kill somebody than refuse to reserve memory."""

_FIELDS = struct.Struct("=8s3Q")


def writing_mark(sequence: int) -> int:
    return 2 * sequence + 1


def written_mark(sequence: int) -> int:
    return 2 * sequence + 2


@dataclass(frozen=True, slots=True)
class RingLayout:
    """`slot_bytes` is the longest frame that a slot holds."""

    slots: int
    slot_bytes: int
    checksums: bool

    def __post_init__(self) -> None:
        if min(self.slots, self.slot_bytes) < 1 or self.size_bytes > MOST_BYTES:
            raise MemoryUnavailable(f"there are no rings of {self.slots} slots of {self.slot_bytes} bytes")

    @classmethod
    def read(cls, memory: mmap) -> RingLayout:
        """Raises MemoryUnavailable: it is no ring, or not of this version."""
        if len(memory) < LINE:
            raise MemoryUnavailable(f"{len(memory)} bytes are no ring")
        magic, slots, slot_bytes, checksums = _FIELDS.unpack_from(memory)
        if magic != MAGIC:
            raise MemoryUnavailable("it is no ring of this version")
        layout = cls(slots, slot_bytes, bool(checksums))
        if layout.size_bytes != len(memory):
            raise MemoryUnavailable(f"a ring of {layout.size_bytes} bytes has {len(memory)}")
        return layout

    def write(self, memory: mmap) -> None:
        _FIELDS.pack_into(memory, 0, MAGIC, self.slots, self.slot_bytes, self.checksums)

    @property
    def stride(self) -> int:
        """Bytes from slot to slot."""
        return LINE + -(-self.slot_bytes // LINE) * LINE

    @property
    def size_bytes(self) -> int:
        return LINE + self.slots * self.stride

    def mark_at(self, sequence: int) -> int:
        """In bytes, as is the frame's place."""
        return LINE + sequence % self.slots * self.stride

    def frame_at(self, sequence: int) -> int:
        return self.mark_at(sequence) + LINE
