"""Which grammars are asked for so often that one replica is not enough; pure."""

from __future__ import annotations

import math
from collections.abc import Callable

HALF_LIFE_S = 10.0
DEVIATIONS = 2.0
REMEMBERED = 10_000
_LARGEST = 2.0**40


class Popularity:
    """How much of one router's traffic each key makes up, lately: what was asked for `half_life_s` ago counts half. `clock` in seconds."""

    def __init__(self, clock: Callable[[], float], half_life_s: float = HALF_LIFE_S) -> None:
        self._clock = clock
        self._half_life_s = half_life_s
        self._since = clock()
        # In units that grow with time, so that nothing has to be taken back while time goes by.
        self._counts: dict[str, float] = {}
        self._total = 0.0

    def asked(self, key: str) -> None:
        """For once; an empty key is a request without one."""
        unit = self._unit()
        self._total += unit
        if key:
            self._counts[key] = self._counts.get(key, 0.0) + unit
        if unit > _LARGEST or len(self._counts) > REMEMBERED:
            self._forget(unit)

    def share(self, key: str) -> float:
        """From 0 to 1, and rather too little than too much: a few requests are no sign of popularity."""
        unit = self._unit()
        seen = self._counts.get(key, 0.0) / unit
        return max(0.0, seen - DEVIATIONS * math.sqrt(seen)) * unit / self._total if self._total else 0.0

    def _unit(self) -> float:
        return math.exp2(min(1000.0, max(0.0, self._clock() - self._since) / self._half_life_s))

    def _forget(self, unit: float) -> None:
        """What would count for less than one request now; should that be little, the less popular half."""
        counts = {key: count / unit for key, count in self._counts.items() if count >= unit}
        if len(counts) > REMEMBERED // 2:
            counts = dict(sorted(counts.items(), key=lambda one: one[1])[-REMEMBERED // 2 :])
        self._counts, self._total, self._since = counts, self._total / unit, self._clock()
