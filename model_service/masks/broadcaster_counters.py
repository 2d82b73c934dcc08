"""What a broadcaster has done for its engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock


@dataclass(frozen=True, slots=True)
class MaskTotals:
    """All of them only grow. `frames`: that were published, with `rows` masks; `late`: that engines did not get in time; `frame_bytes`: as
    they were published; `naive_bytes`: of their masks as rows; `refused`: engines that were sent away, for what they said."""

    frames: int = 0
    rows: int = 0
    late: int = 0
    frame_bytes: int = 0
    naive_bytes: int = 0
    refused: int = 0


class BroadcasterCounters:
    """Of all engines; written by a thread each. `engines`: that are connected now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.totals = MaskTotals()
        self.engines = 0

    def add(self, **grown: int) -> None:
        """By how much fields of `MaskTotals` have grown."""
        with self._lock:
            self.totals = replace(self.totals, **{name: getattr(self.totals, name) + more for name, more in grown.items()})

    @contextmanager
    def connected(self) -> Iterator[None]:
        with self._lock:
            self.engines += 1
        try:
            yield
        finally:
            with self._lock:
                self.engines -= 1
