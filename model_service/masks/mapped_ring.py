"""The ring that a process reads its frames from, for as long as it is the one they stand in."""

from __future__ import annotations

from model_service.errors import RingUnavailable
from model_service.masks.client import FrameRef
from model_service.masks.ring import RingReader
from model_service.masks.shared_memory import MemoryAddress


class MappedRing:
    """For one thread. One ring at a time."""

    def __init__(self) -> None:
        self._address: MemoryAddress | None = None
        self._reader: RingReader | None = None

    def attach(self, address: MemoryAddress) -> bool:
        """Map a ring in place of the one before; False where it cannot be reached from here."""
        self.close()
        try:
            self._reader = RingReader(address)
        except RingUnavailable:
            return False
        self._address = address
        return True

    def read(self, reference: FrameRef) -> bytes:
        """A copy of a frame that has been published.

        Raises:
            MaskError: it is gone, or in another ring.
        """
        if self._reader is None or reference.address != self._address:
            raise RingUnavailable("the frame is in a ring that is not mapped")
        return self._reader.read(reference.sequence, deadline=0.0)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._address = self._reader = None
