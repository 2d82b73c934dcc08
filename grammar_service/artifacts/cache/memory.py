"""Values in this process: least recently used, bounded by bytes; pinned ones stay."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sized
from typing import Generic, TypeVar

V = TypeVar("V", bound=Sized)


class MemoryCache(Generic[V]):
    """Holds at most `max_bytes` of values, whose lengths are bytes; a value that cannot fit is not kept. Not for use by several threads.

    Pinned values are not evicted. They take at most half of `max_bytes`: beyond it, the pinned value that was used longest ago
    becomes an ordinary one, so that pins which nobody uses any more cannot fill the cache.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, V] = OrderedDict()
        self._pinned: OrderedDict[str, V] = OrderedDict()
        self.size_bytes = 0
        self.pinned_bytes = 0

    def __len__(self) -> int:
        return len(self._values) + len(self._pinned)

    def get(self, key: str) -> V | None:
        held = self._pinned if key in self._pinned else self._values
        value = held.get(key)
        if value is not None:
            held.move_to_end(key)
        return value

    def put(self, key: str, value: V) -> None:
        """A pinned key stays pinned, if its new value fits."""
        pinned = key in self._pinned
        self.discard(key)
        if len(value) > self._max_bytes - self.pinned_bytes:
            return
        self._values[key] = value
        self.size_bytes += len(value)
        if pinned:
            self.pin(key)
        while self.size_bytes > self._max_bytes:
            _, evicted = self._values.popitem(last=False)
            self.size_bytes -= len(evicted)

    def pin(self, key: str) -> bool:
        """Keep the value of `key` until `unpin`; False where there is none, or it alone takes more than half of the cache."""
        if key in self._pinned:
            self._pinned.move_to_end(key)
            return True
        value = self._values.get(key)
        if value is None or len(value) > self._max_bytes // 2:
            return False
        del self._values[key]
        self._pinned[key] = value
        self.pinned_bytes += len(value)
        while self.pinned_bytes > self._max_bytes // 2:
            self.unpin(next(iter(self._pinned)))
        return True

    def unpin(self, key: str) -> None:
        """The value becomes an ordinary one, used just now."""
        value = self._pinned.pop(key, None)
        if value is not None:
            self.pinned_bytes -= len(value)
            self._values[key] = value

    def discard(self, key: str) -> None:
        self.unpin(key)
        value = self._values.pop(key, None)
        if value is not None:
            self.size_bytes -= len(value)
