"""Where a request goes: to the replica of its grammar, as long as that one is not over its share."""

from __future__ import annotations

from random import Random

import numpy as np

from router.fleet import Flags, Positions, Scores
from router.load import Loads
from router.parameters import Parameters


class Affinity:
    """Rendezvous hashing with bounded loads (after Mirrokni, Thorup and Zadimoghaddam 2018), and two choices for what has no grammar.

    For equal fleets and loads every process chooses alike; only requests with neither key nor prefix ask `random`. It never raises.
    """

    def __init__(self, random: Random, parameters: Parameters) -> None:
        self._random = random
        self._parameters = parameters

    def choose(self, loads: Loads, key: str, popularity: float = 0.0, ranks: int = 1) -> tuple[str, ...]:
        """The best `ranks` replicas for a grammar, as far as so many are within their share; none where there are none. `popularity` is the
        key's share of all traffic: the share of replicas that a popular grammar finds above the mean is smaller, so that it makes room for
        rare ones, which would cost another copy each time; it is resident on the next ones before long."""
        if not len(loads.fleet):
            return ()
        scores = loads.fleet.scores(key)
        home = int(scores.argmin())
        # Who waits for another replica is about to take the room that it seems to have.
        elsewhere = float(loads.waiting.sum() - loads.waiting[home])
        rarity = max(0.0, 1 - popularity * len(loads.fleet))
        return _ids(loads, _best(scores, self._within(loads, elsewhere, rarity), ranks))

    def less_loaded(self, loads: Loads, prefix: str | None = None) -> tuple[str, ...]:
        """For a request without a grammar, the less loaded of two first. These are random, or those whose prefix caches may hold how its
        prompt begins."""
        if prefix is not None and len(loads.fleet):
            order = _best(loads.fleet.scores(prefix), self._within(loads), 2)
        else:
            order = np.array(self._random.sample(range(len(loads.fleet)), min(2, len(loads.fleet))), dtype=np.intp)
        return _ids(loads, order[np.argsort(loads.load[order], kind="stable")])

    def _within(self, loads: Loads, elsewhere: float = 0.0, rarity: float = 1.0) -> Flags:
        """Those whose load is within `bound` × the mean, and that one request more would not keep waiting more than others."""
        numbers, replicas = self._parameters, len(loads.fleet)
        share = (1 + (numbers.bound - 1) * rarity) * (float(loads.load.sum()) + elsewhere) / replicas
        seats = max(numbers.seats, (1 + numbers.slack * rarity) * (float(loads.requests.sum()) + elsewhere) / replicas)
        within: Flags = (loads.load <= share) & (loads.requests + 1 <= seats)
        # Where all are full, or by rounding, nobody may be left.
        return within if within.any() else np.ones(replicas, dtype=np.bool_)


def _best(scores: Scores, within: Flags, count: int) -> Positions:
    """The positions of the lowest scores within, in their order; at most `count`, at least one."""
    allowed: Positions = within.nonzero()[0]
    if count == 1:
        return allowed[[int(scores[allowed].argmin())]]
    best: Positions = allowed[scores[allowed].argsort()[:count]]
    return best


def _ids(loads: Loads, order: Positions) -> tuple[str, ...]:
    return tuple(map(loads.fleet.ids.__getitem__, order.tolist()))
