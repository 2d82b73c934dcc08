"""How fast engines work off their prefill backlogs, as far as reports tell; pure."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

SLOWER = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Times as slow as is assumed at first."""
SEEN, ENOUGH = 32, 8
LEAST_TOKENS = 256
"""A backlog that says anything."""


class PrefillPace:
    """The time in which half of a backlog is gone: `half_life_s` at first and at least, which suits an accelerator; an engine on a CPU may
    take seconds."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self._least = half_life_s
        self._seen: deque[float] = deque(maxlen=SEEN)

    def observed(self, before: float, sent: float, seconds: float, left: float) -> None:
        """A replica had `before` tokens outstanding, got `sent` in the course of so many seconds, and has `left` now."""
        if before + sent < LEAST_TOKENS or seconds <= 0:
            return
        candidates = [self._least * slower for slower in SLOWER]
        self._seen.append(min(candidates, key=lambda half_life: abs(_left(before, sent, seconds, half_life) - left)))
        if len(self._seen) >= ENOUGH:
            self.half_life_s = median(self._seen)


def _left(before: float, sent: float, seconds: float, half_life_s: float) -> float:
    """What should be left, where tokens come evenly and the backlog shrinks in proportion to its size."""
    share = math.exp2(-seconds / half_life_s)
    return before * share + sent * (1 - share) * half_life_s / (math.log(2) * seconds)
