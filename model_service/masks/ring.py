"""The last mask frames of one replica, written by one process and read by all workers of the node.

The writer waits for nobody: a frame overwrites the oldest one, and who reads too late is told so. Readers hold no locks and cannot write,
so that one that dies or stalls is nothing to the others. Marks, lengths and the like are stored by `memoryview`s of machine words, which
CPython moves in one piece. Their order is kept by x86-64; other processors may pass a frame's end on before its middle, so that there
frames have checksums by default.
"""

from __future__ import annotations

import platform
import time
import zlib
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from model_service.errors import FrameGone, FrameLate, FrameTooLarge, InvalidFrame, RingUnavailable
from model_service.masks.futex import Futex
from model_service.masks.ring_layout import CHECKSUM, CLOSED_AT, LENGTH, PUBLISHED_AT, WORD_AT, RingLayout, writing, written
from model_service.masks.shared_memory import MemoryAddress, OwnMemory, mapped

SLOTS = 4
"""A worker is never more than a step or two behind the one whose masks are filled."""
SLOT_BYTES = 8 << 20
"""A step of 256 requests on 131,072 tokens whose masks are all different and cannot be shortened has 4 MiB."""
PURPOSE = "maskcast-masks"
LONGEST_SLEEP_S = 0.001
"""The writer may be killed between publishing a frame and waking its readers, so that these look again by themselves."""
_IN_ORDER = frozenset({"x86_64", "AMD64"})
_Taken = TypeVar("_Taken")


class RingWriter:
    """For one thread. `checksums` None: where the processor needs them.

    Raises:
        RingUnavailable: there is no memory of that size.
    """

    def __init__(self, slots: int = SLOTS, slot_bytes: int = SLOT_BYTES, checksums: bool | None = None) -> None:
        self._layout = RingLayout(slots, slot_bytes, platform.machine() not in _IN_ORDER if checksums is None else checksums)
        self._memory = OwnMemory(PURPOSE, self._layout.size_bytes)
        self._layout.write(self._memory.map)
        self._bytes = memoryview(self._memory.map)
        self._words = self._bytes.cast("Q")
        self._halves = self._bytes.cast("I")
        self._futex = Futex(_address(self._bytes) + WORD_AT)

    @property
    def address(self) -> MemoryAddress:
        """What a reader needs to know."""
        return self._memory.address

    def publish(self, sequence: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes where readers of `sequence` look, and wake those who wait. Sequence numbers ascend, from 0 or more; some may be
        left out.

        Raises:
            FrameTooLarge: more than a slot holds. Nothing has been written; the sequence number may be used for another frame.
            ValueError: a number that is not above the last one.
        """
        frame = memoryview(data).cast("B")
        if len(frame) > self._layout.slot_bytes:
            raise FrameTooLarge(f"a mask frame of {len(frame)} bytes does not fit a slot of {self._layout.slot_bytes}")
        if sequence < self._words[PUBLISHED_AT // 8]:
            raise ValueError(f"frame {sequence} comes after frame {self._words[PUBLISHED_AT // 8] - 1}")
        at, start = self._layout.mark_at(sequence) // 8, self._layout.frame_at(sequence)
        self._words[at] = writing(sequence)
        self._words[at + LENGTH] = len(frame)
        self._words[at + CHECKSUM] = zlib.crc32(frame) if self._layout.checksums else 0
        self._bytes[start : start + len(frame)] = frame
        self._words[at] = written(sequence)
        self._words[PUBLISHED_AT // 8] = sequence + 1
        self._wake()

    def close(self) -> None:
        """Readers are told; they keep the memory until they close as well."""
        self._words[CLOSED_AT // 8] = 1
        self._wake()
        for view in (self._words, self._halves, self._bytes):
            view.release()
        self._memory.close()

    def _wake(self) -> None:
        self._halves[WORD_AT // 4] = (self._halves[WORD_AT // 4] + 1) & 0xFFFFFFFF
        self._futex.wake()


class RingReader:
    """For one thread. `clock` tells the time, in seconds, that deadlines are given in; `longest_sleep_s`: without looking by itself.

    Raises:
        RingUnavailable: there is no ring at the address, or it cannot be reached from here.
    """

    def __init__(
        self, address: MemoryAddress, clock: Callable[[], float] = time.monotonic, longest_sleep_s: float = LONGEST_SLEEP_S
    ) -> None:
        self._map = mapped(address)
        try:
            self._layout = RingLayout.read(self._map)
        except RingUnavailable:
            self._map.close()
            raise
        self._clock = clock
        self._longest_sleep_s = longest_sleep_s
        self._bytes = memoryview(self._map)
        self._words, self._halves = self._bytes.cast("Q"), self._bytes.cast("I")
        self._futex = Futex(_address(self._bytes) + WORD_AT)

    @property
    def newest(self) -> int | None:
        """The sequence number that was published last."""
        published = self._words[PUBLISHED_AT // 8]
        return published - 1 if published else None

    def read(self, sequence: int, deadline: float) -> bytes:
        """A copy of the frame; waits for it up to the deadline, asleep. A frame that is there is returned whatever the time.

        Raises:
            FrameLate: it was not published in time.
            FrameGone: a later one has been, and this one is overwritten or was left out.
            InvalidFrame: its checksum was still wrong at the deadline.
            RingUnavailable: it was not published, and the writer has closed the ring.
        """
        return self._awaited(sequence, deadline, self._copied)

    def size(self, sequence: int, deadline: float) -> int:
        """Bytes of the frame, as soon as it is there; otherwise like `read`, but no checksum is looked at."""
        return self._awaited(sequence, deadline, self._length)

    def close(self) -> None:
        for view in (self._words, self._halves, self._bytes):
            view.release()
        self._map.close()

    def _awaited(self, sequence: int, deadline: float, take: Callable[[int, int], _Taken | None]) -> _Taken:
        while True:
            heard = self._halves[WORD_AT // 4]
            closed = self._words[CLOSED_AT // 8]
            taken, fault = self._look(sequence, take)
            if taken is not None:
                return taken
            if closed:
                raise RingUnavailable(f"the ring was closed before frame {sequence}")
            left = deadline - self._clock()
            if left <= 0:
                raise fault
            self._futex.wait(heard, min(left, self._longest_sleep_s))

    def _look(self, sequence: int, take: Callable[[int, int], _Taken | None]) -> tuple[_Taken | None, FrameLate | InvalidFrame]:
        """What `take` makes of the frame, given the words and bytes where it stands, or what is the matter if it never comes."""
        late = FrameLate(f"mask frame {sequence} was not published in time")
        # In this order: what is published by now must have its mark.
        published = self._words[PUBLISHED_AT // 8]
        at = self._layout.mark_at(sequence) // 8
        mark = self._words[at]
        if mark != written(sequence):
            if mark > written(sequence) or published > sequence:
                raise FrameGone(f"mask frame {sequence} is gone: frame {published - 1} has been published")
            return None, late
        taken = take(at, self._layout.frame_at(sequence))
        if self._words[at] != mark:
            raise FrameGone(f"mask frame {sequence} was overwritten while it was read")
        return taken, late if taken is not None else InvalidFrame(f"mask frame {sequence} has another checksum")

    def _length(self, at: int, _: int) -> int:
        return min(self._words[at + LENGTH], self._layout.slot_bytes)

    def _copied(self, at: int, start: int) -> bytes | None:
        checksum = self._words[at + CHECKSUM]
        frame = bytes(self._bytes[start : start + self._length(at, start)])
        return None if self._layout.checksums and zlib.crc32(frame) != checksum else frame


def _address(view: memoryview) -> int:
    return int(np.frombuffer(view, dtype=np.uint8).ctypes.data)
