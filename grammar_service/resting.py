"""Keys that are left alone for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

REST_S = 60.0
_MOST = 10_000


class Resting:
    """Remembers which grammars could not be compiled just now, so that those with a stopgap are not tried again at every request.

    It is no negative cache: nobody is refused because of it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return self._clock() < self._until.get(key, float("-inf"))

    def rest(self, key: str) -> None:
        self._until[key] = self._clock() + REST_S
        self._until.move_to_end(key)
        if len(self._until) > _MOST:
            self._until.popitem(last=False)
