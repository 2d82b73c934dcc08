"""Which grammars are asked for so often that one replica is not enough; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

HALF_LIFE_S = 10.0
"""Seconds: bursts are over in less, and their grammar is rare again."""
DEVIATIONS = 2.0
"""Standard deviations that chance may have added to a count: a few requests are no sign of popularity."""


class Popularity:
    """How much of one router's traffic each key makes up, lately: every `HALF_LIFE_S` all that was asked for comes to count half. `clock`
    in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self._counts: Counter[str | None] = Counter()

    def asked(self, key: str | None) -> None:
        """For once; None is a request without a grammar."""
        if self._clock() >= self._since + HALF_LIFE_S:
            self._since = self._clock()
            self._counts = Counter({key: count // 2 for key, count in self._counts.items() if count > 1})
        self._counts[key] += 1

    def share(self, key: str) -> float:
        """From 0 to 1, and rather too little than too much."""
        seen = self._counts[key]
        return max(0.0, seen - DEVIATIONS * math.sqrt(seen)) / self._counts.total() if seen else 0.0
