"""Which drafts are worth their place in a forward: learnt from those that were accepted."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

EXPECTED, WEIGHT = 0.8, 4.0
"""Drafts that a new kind counts as having had, and the share of them that was accepted: that of its source, or this one of a new source."""
MEMORY, SOURCE_MEMORY = 0.95, 0.99
"""What a draft still counts when one more has been judged: the last 20 or so of a kind do, the last 100 of a source."""
TRIED_AGAIN = 200
"""Chances of a kind that is not worth a draft, after which one is made all the same. While it is accepted, so is the next."""
REMEMBERED = 8192
"""Kinds."""


@dataclass(slots=True)
class _Outcomes:
    accepted: float = EXPECTED * WEIGHT
    tried: float = WEIGHT
    passed_over: int = 0

    @property
    def share(self) -> float:
        return self.accepted / self.tried

    def add(self, accepted: int, tried: int, memory: float) -> None:
        kept = memory**tried
        self.accepted = kept * self.accepted + accepted
        self.tried = kept * self.tried + tried


Kind = tuple[Hashable, ...]
"""What tells drafts apart that are accepted with different likelihoods: whose answers, which member, which source. A new kind expects what
all kinds with the same last element had accepted: the source, and of forced text also whether drafts stand ahead of it."""


class Acceptance:
    """By a kind of drafts: how likely one is accepted where all ahead of it are."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[Kind, _Outcomes] = OrderedDict()
        self._sources: dict[Hashable, _Outcomes] = {}

    def likely(self, kind: Kind) -> float:
        return (self._kinds.get(kind) or self._source(kind)).share

    def worthwhile(self, kind: Kind, chance: float, least: float) -> int:
        """How many drafts of a kind are accepted with a probability of `least` or more, if all ahead of them are with that `chance`."""
        if chance < least:
            return 0
        likely = min(max(self.likely(kind), 0.01), 0.99)
        return math.floor(math.log(least / chance) / math.log(likely)) if least > 0 else 1 << 30

    def record(self, kind: Kind, accepted: int, was_rejected: bool) -> None:
        """So many drafts in turn were accepted, and the one behind them was rejected, or there was none."""
        known = self._known(kind)
        known.add(accepted, accepted + was_rejected, MEMORY)
        self._source(kind).add(accepted, accepted + was_rejected, SOURCE_MEMORY)
        if accepted:
            known.passed_over = TRIED_AGAIN

    def is_retry_due(self, kind: Kind) -> bool:
        """Of a kind that is not worth a draft: whether one is made all the same. Called once for each chance."""
        known = self._known(kind)
        known.passed_over += 1
        if known.passed_over <= TRIED_AGAIN:
            return False
        known.passed_over = 0
        return True

    def _known(self, kind: Kind) -> _Outcomes:
        known = self._kinds.setdefault(kind, _Outcomes(self.likely(kind) * WEIGHT))
        self._kinds.move_to_end(kind)
        if len(self._kinds) > REMEMBERED:
            self._kinds.popitem(last=False)
        return known

    def _source(self, kind: Kind) -> _Outcomes:
        return self._sources.setdefault(kind[-1], _Outcomes())
