"""Which grammars are asked for so often that one replica is not enough; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class Popularity:
    """How much of one router's traffic each key makes up, lately: every half-life all that was asked for comes to count half. `clock`
    in seconds."""

    def __init__(self, clock: Callable[[], float], half_life_s: float) -> None:
        self._clock = clock
        self._half_life_s = half_life_s
        self._since = clock()
        self._counts: Counter[str | None] = Counter()
        self._total = 0

    def asked(self, key: str | None) -> None:
        """For once; None is a request without a grammar."""
        now = self._clock()
        # A clock that is set back counts as one that goes on: or all would be kept until it is there again.
        if half_lives := int(abs(now - self._since) / self._half_life_s):
            self._since = now
            self._counts = Counter({key: left for key, count in self._counts.items() if (left := count >> half_lives)})
            self._total = self._counts.total()
        self._counts[key] += 1
        self._total += 1

    def share(self, key: str) -> float:
        """From 0 to 1."""
        return self._counts[key] / self._total if self._total else 0.0
