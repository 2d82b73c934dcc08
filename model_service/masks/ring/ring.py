"""The last mask frames of one engine, written by one process and read by all workers of the node.

The writer waits for nobody: a frame overwrites the oldest one, and who reads too late is told so. Readers hold no locks and cannot write,
so that one that dies or stalls is nothing to the others. Marks and checksums are stored by `memoryview`s of machine words, which
CPython moves in one piece. Their order is kept by x86-64; other processors may pass a frame's end on before its middle, so that there
frames have checksums by default.
"""

from __future__ import annotations

import platform
import zlib
from dataclasses import dataclass

from model_service.errors import FrameGone, FrameTooLarge, InvalidFrame, MemoryUnavailable
from model_service.masks.ring.layout import CHECKSUM, RingLayout, writing_mark, written_mark
from model_service.shared_memory import MemoryAddress, OwnMemory, mapped

SLOTS = 4
"""A worker is never more than a step or two behind the one whose masks are filled."""
SLOT_BYTES = 8 << 20
"""A step of 256 requests on 131,072 tokens whose masks are all different and cannot be shortened has 4 MiB."""
PURPOSE = "maskcast-masks"
_IN_ORDER = frozenset({"x86_64", "AMD64"})


@dataclass(frozen=True, slots=True)
class FrameRef:
    """Where a frame stands: in the ring at `address`, under its sequence number."""

    address: MemoryAddress
    sequence: int
    size_bytes: int


class RingWriter:
    """For one thread. `checksums` None: where the processor needs them.

    Raises:
        MemoryUnavailable: there is no memory of that size.
    """

    def __init__(self, slots: int = SLOTS, slot_bytes: int = SLOT_BYTES, checksums: bool | None = None) -> None:
        self._layout = RingLayout(slots, slot_bytes, platform.machine() not in _IN_ORDER if checksums is None else checksums)
        self._memory = OwnMemory(PURPOSE, self._layout.size_bytes)
        self._layout.write(self._memory.map)
        self._bytes = memoryview(self._memory.map)
        self._words = self._bytes.cast("Q")
        self._next = 0

    @property
    def address(self) -> MemoryAddress:
        """What a reader needs to know."""
        return self._memory.address

    def publish(self, sequence: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes where readers of `sequence` look. Sequence numbers ascend, from 0 or more; some may be left out.

        Raises:
            FrameTooLarge: more than a slot holds. Nothing has been written; the sequence number may be used for another frame.
            ValueError: a number that is not above the last one.
        """
        frame = memoryview(data).cast("B")
        if len(frame) > self._layout.slot_bytes:
            raise FrameTooLarge(f"a mask frame of {len(frame)} bytes does not fit a slot of {self._layout.slot_bytes}")
        if sequence < self._next:
            raise ValueError(f"frame {sequence} comes after frame {self._next - 1}")
        at, start = self._layout.mark_at(sequence) // 8, self._layout.frame_at(sequence)
        self._words[at] = writing_mark(sequence)
        self._words[at + CHECKSUM] = zlib.crc32(frame) if self._layout.checksums else 0
        self._bytes[start : start + len(frame)] = frame
        self._words[at] = written_mark(sequence)
        self._next = sequence + 1

    def close(self) -> None:
        """Readers keep the memory until they close as well."""
        for view in (self._words, self._bytes):
            view.release()
        self._memory.close()


class RingReader:
    """For one thread.

    Raises:
        MemoryUnavailable: there is no ring at the address, or it cannot be reached from here.
    """

    def __init__(self, address: MemoryAddress) -> None:
        self.address = address
        self._map = mapped(address)
        try:
            self._layout = RingLayout.read(self._map)
        except MemoryUnavailable:
            self._map.close()
            raise
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("Q")

    def read(self, reference: FrameRef) -> bytes:
        """A copy of a frame of which the writer has said that it is there.

        Raises:
            FrameGone: it is not: another one has overwritten it, it was never finished, or it is in another ring.
            InvalidFrame: it has another checksum.
        """
        sequence, size = reference.sequence, reference.size_bytes
        at, start = self._layout.mark_at(sequence) // 8, self._layout.frame_at(sequence)
        if reference.address != self.address or size > self._layout.slot_bytes or self._words[at] != written_mark(sequence):
            raise FrameGone(f"mask frame {sequence} of {size} bytes is not in the ring")
        checksum = self._words[at + CHECKSUM]
        frame = bytes(self._bytes[start : start + size])
        if self._words[at] != written_mark(sequence):
            raise FrameGone(f"mask frame {sequence} was overwritten while it was read")
        if self._layout.checksums and zlib.crc32(frame) != checksum:
            raise InvalidFrame(f"mask frame {sequence} has another checksum")
        return frame

    def close(self) -> None:
        for view in (self._words, self._bytes):
            view.release()
        self._map.close()
