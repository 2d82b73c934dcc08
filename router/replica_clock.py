"""When a replica's reports were taken, by our clock, though clocks are set while they run; pure."""

from __future__ import annotations

ODD = 5
"""Reports come every second; what was held up comes together, or as the last one alone."""
STEADY_S = 2.0


class ReplicaClock:
    """One that is ahead counts as if it were not. Of one that is behind by more than reports may be old, all would seem stale: where new
    ones go on coming, as old as each other, it was set back, or ours forward, and from then on it is read by the difference."""

    def __init__(self) -> None:
        self._behind_s = 0.0
        self._odd: list[float] = []
        self._last = 0.0

    def ours(self, taken_at: float, now: float, stale_s: float) -> float | None:
        """When, at most `now`; None: longer ago than `stale_s`."""
        if now - taken_at < stale_s:
            self._behind_s, self._odd = 0.0, []
        elif not now - taken_at - self._behind_s < stale_s and not self._is_odd(taken_at, now):
            return None
        return min(taken_at + self._behind_s, now)

    def _is_odd(self, taken_at: float, now: float) -> bool:
        """Once it is sure, how far it is behind is known."""
        if taken_at == self._last:
            return False
        self._last = taken_at
        self._odd = [*self._odd[1 - ODD :], now - taken_at]
        if len(self._odd) < ODD or max(self._odd) - min(self._odd) > STEADY_S:
            return False
        self._behind_s, self._odd = min(self._odd), []
        return True
