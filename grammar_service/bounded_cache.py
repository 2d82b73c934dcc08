"""Values that were asked for last, bounded by their number and by what they take."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 1024
"""What an entry takes beside its texts, or more."""


class BoundedCache(Generic[K, V]):
    """At most `most` values, whose sizes by `size_of`, in bytes, are `most_bytes` in all; the least recently used go first. A value that is
    larger than that is not kept."""

    def __init__(self, most: int, most_bytes: int, size_of: Callable[[V], int]) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size_of = size_of
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """None: it is not there, or no longer."""
        if (found := self._held.get(key)) is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V) -> None:
        self.discard(key)
        size = self._size_of(value) + ENTRY_BYTES
        if size > self._most_bytes:
            return
        self._held[key] = value, size
        self.size_bytes += size
        while self.size_bytes > self._most_bytes or len(self._held) > self._most:
            self.discard(next(iter(self._held)))

    def discard(self, key: K) -> None:
        if (found := self._held.pop(key, None)) is not None:
            self.size_bytes -= found[1]
