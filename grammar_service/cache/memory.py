"""Artifacts in this process: least recently used, bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict


class MemoryCache:
    """Holds at most `max_bytes` of values; a value larger than that is not kept. Not for use by several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> bytes | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: str, value: bytes) -> None:
        self.discard(key)
        if len(value) > self._max_bytes:
            return
        self._values[key] = value
        self.size_bytes += len(value)
        while self.size_bytes > self._max_bytes:
            _, evicted = self._values.popitem(last=False)
            self.size_bytes -= len(evicted)

    def discard(self, key: str) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self.size_bytes -= len(value)
