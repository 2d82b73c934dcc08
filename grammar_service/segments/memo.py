"""What was found out before, as much of it as fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """At most `most` results, the least recently used dropped first. Not for several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K, find: Callable[[], V]) -> V:
        """The result held for the key, else what `find` returns."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        value = self._held[key] = find()
        if len(self._held) > self._most:
            self._held.popitem(last=False)
        return value
