"""How a ring of mask frames lies in its memory, in the machine's own byte order; version 1.

| at | type | what |
|---|---|---|
| 0 | `8s`, `uint64[3]` | magic with the version, number of slots, bytes that a slot holds, whether there are checksums |
| 64 | `uint64` | one more than the sequence number that was published last, 0 before the first |
| 72 | `uint32` | counts up with each publication: what readers sleep on |
| 80 | `uint64` | not 0: the writer has closed the ring |
| 128 | slots | each `uint64[3]` (mark, length, checksum), and at byte 64 of it the frame |

Frame s stands in slot s mod slots. Its mark is 2s + 1 while it is written and 2s + 2 from then on; a reader that finds 2s + 2 before and
after copying has copied frame s, whole.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap

from model_service.errors import RingUnavailable

MAGIC = b"MCRING\0\1"
LINE = 64
"""A cache line: what the writer changes for one slot is in no line of another."""
PUBLISHED_AT, WORD_AT, CLOSED_AT = 64, 72, 80
LENGTH, CHECKSUM = 1, 2
"""Words of a slot, after its mark."""
MOST_BYTES = 1 << 30
"""Of a whole ring: the kernel would sooner kill somebody than refuse to reserve memory."""

_FIELDS = struct.Struct("=8s3Q")
_SLOTS_AT = 128


def writing(sequence: int) -> int:
    return 2 * sequence + 1


def written(sequence: int) -> int:
    return 2 * sequence + 2


@dataclass(frozen=True, slots=True)
class RingLayout:
    """`slot_bytes` is the longest frame that a slot holds."""

    slots: int
    slot_bytes: int
    checksums: bool

    def __post_init__(self) -> None:
        if min(self.slots, self.slot_bytes) < 1 or self.size_bytes > MOST_BYTES:
            raise RingUnavailable(f"there are no rings of {self.slots} slots of {self.slot_bytes} bytes")

    @classmethod
    def read(cls, memory: mmap) -> RingLayout:
        """Raises RingUnavailable: it is no ring, or not of this version."""
        if len(memory) < _SLOTS_AT:
            raise RingUnavailable(f"{len(memory)} bytes are no ring")
        magic, slots, slot_bytes, checksums = _FIELDS.unpack_from(memory)
        if magic != MAGIC:
            raise RingUnavailable("it is no ring of this version")
        layout = cls(slots, slot_bytes, bool(checksums))
        if layout.size_bytes != len(memory):
            raise RingUnavailable(f"a ring of {layout.size_bytes} bytes has {len(memory)}")
        return layout

    def write(self, memory: mmap) -> None:
        _FIELDS.pack_into(memory, 0, MAGIC, self.slots, self.slot_bytes, self.checksums)

    @property
    def stride(self) -> int:
        """Bytes from slot to slot."""
        return LINE + -(-self.slot_bytes // LINE) * LINE

    @property
    def size_bytes(self) -> int:
        return _SLOTS_AT + self.slots * self.stride

    def mark_at(self, sequence: int) -> int:
        """In bytes, as is the frame's place."""
        return _SLOTS_AT + sequence % self.slots * self.stride

    def frame_at(self, sequence: int) -> int:
        return self.mark_at(sequence) + LINE
