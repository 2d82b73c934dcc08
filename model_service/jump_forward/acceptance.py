"""Which drafts are worth their place in a forward: learnt from those that were accepted."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

EXPECTED, WEIGHT = 0.8, 4.0
"""A kind of drafts that nobody has judged counts as so many of which this share was accepted."""
MEMORY = 0.95
"""What a draft still counts when one more has been judged: the last 20 or so do."""
TRIED_AGAIN = 200
"""Chances of a kind that is not worth a draft, after which one is made all the same. While it is accepted, so is the next."""
REMEMBERED = 8192
"""Kinds."""


@dataclass(slots=True)
class _Judged:
    accepted: float = EXPECTED * WEIGHT
    tried: float = WEIGHT
    passed_over: int = 0


class Acceptance:
    """By a kind of drafts: how likely one is accepted where all ahead of it are."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[Hashable, _Judged] = OrderedDict()

    def likely(self, kind: Hashable) -> float:
        judged = self._kinds.get(kind)
        return EXPECTED if judged is None else judged.accepted / judged.tried

    def worthwhile(self, kind: Hashable, chance: float, least: float) -> int:
        """How many drafts of a kind are accepted with a probability of `least` or more, if all ahead of them are with that `chance`."""
        if chance < least:
            return 0
        likely = min(max(self.likely(kind), 0.01), 0.99)
        return math.floor(math.log(least / chance) / math.log(likely)) if least > 0 else 1 << 30

    def judged(self, kind: Hashable, accepted: int, was_rejected: bool) -> None:
        """So many drafts in turn were accepted, and the one behind them was rejected, or there was none."""
        known = self._known(kind)
        tried = accepted + was_rejected
        kept = MEMORY**tried
        known.accepted = kept * known.accepted + accepted
        known.tried = kept * known.tried + tried
        if accepted:
            known.passed_over = TRIED_AGAIN

    def is_due(self, kind: Hashable) -> bool:
        """Of a kind that is not worth a draft: whether one is made all the same. Called once for each chance."""
        known = self._known(kind)
        known.passed_over += 1
        if known.passed_over <= TRIED_AGAIN:
            return False
        known.passed_over = 0
        return True

    def _known(self, kind: Hashable) -> _Judged:
        known = self._kinds.setdefault(kind, _Judged())
        self._kinds.move_to_end(kind)
        if len(self._kinds) > REMEMBERED:
            self._kinds.popitem(last=False)
        return known
