"""Where a request goes: to the replica of its grammar, as long as that one is not over its share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import numpy as np

from router.fleet import Flags, Fleet, Floats, Positions, Scores
from router.parameters import Parameters

RANKS = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """Replicas, the best one first, empty where there are none; `passed_over` better ones were over their share."""

    replicas: tuple[str, ...]
    passed_over: int = 0


class Affinity:
    """Rendezvous hashing with bounded loads (after Mirrokni, Thorup and Zadimoghaddam 2018), and two choices for what has no grammar.

    For equal fleets and loads every process chooses alike; only requests with neither key nor prefix ask `random`. It never raises.
    """

    def __init__(self, random: Random, parameters: Parameters | None = None) -> None:
        self._random = random
        self._parameters = parameters or Parameters()

    def choose(
        self,
        fleet: Fleet,
        loads: Floats,
        key: str | None,
        prefix: str | None = None,
        ranks: int = RANKS,
        popularity: float = 0.0,
        requests: Floats | None = None,
        waiting: Floats | None = None,
    ) -> Choice:
        """`loads` by position in `fleet`, as `LoadBoard.loads` gives them, and the `requests` among them, which take seats (None: they are
        all of the load); so many more are `waiting` for each of them; `prefix` names the beginning of the prompt; `popularity` is
        the key's share of all traffic. The choice names so many `ranks`, where so many are within their share, and without a key at
        most two.

        With a key: the best ranks within their share. Where the first one is over, and the key is popular enough to be resident on the
        next ones anyway, the prefix decides between these, so that what a hot grammar spills meets its prefix cache. Without a key:
        the less loaded of two, which are the first ranks of the prefix, or random.
        """
        if not len(fleet):
            return Choice(())
        rarity, requests = self.rarity(fleet, popularity), loads if requests is None else requests
        if key is None:
            return self._less_loaded(fleet, loads, prefix, _within(fleet, loads, requests, *self._shares(fleet, loads, requests, rarity)))
        scores = fleet.scores(key)
        home = int(scores.argmin())
        elsewhere = 0.0 if waiting is None or not self._parameters.counts_waiting else float(waiting.sum() - waiting[home])
        share, seats = self._shares(fleet, loads, requests, rarity, elsewhere)
        if ranks == 1 and loads[home] <= share * fleet.weights[home] and requests[home] + 1 <= seats * fleet.weights[home]:
            return Choice((fleet.ids[home],))
        order = _best(scores, _within(fleet, loads, requests, share, seats), max(1, ranks))
        passed_over = int(np.count_nonzero(scores < scores[order[0]]))
        if passed_over and not rarity and prefix is not None:
            choices = self._parameters.spill_choices
            order[:choices] = order[:choices][np.argsort(fleet.scores(prefix, order[:choices]))]
        return Choice(_ids(fleet, order), passed_over)

    def rarity(self, fleet: Fleet, popularity: float) -> float:
        """1 for a key that is never asked for, 0 for one that is resident everywhere before long."""
        return max(0.0, 1 - popularity * len(fleet) / self._parameters.hot)

    def _shares(self, fleet: Fleet, loads: Floats, requests: Floats, rarity: float, elsewhere: float = 0.0) -> tuple[float, float]:
        """The load and the requests that a replica of weight 1 may have."""
        numbers, mean = self._parameters, max(0.0, float(loads.sum()) + elsewhere) / fleet.weight
        above = rarity * max((numbers.bound - 1) * numbers.leeway * mean, numbers.deviations * math.sqrt(mean)) if rarity else 0.0
        seats = max(numbers.seats, (1 + numbers.slack * rarity) * (float(requests.sum()) + elsewhere) / fleet.weight)
        return max(mean + above, numbers.floor), seats

    def _less_loaded(self, fleet: Fleet, loads: Floats, prefix: str | None, within: Flags) -> Choice:
        if prefix is None or not self._parameters.prefix_alone:
            order = np.array(self._random.sample(range(len(fleet)), min(2, len(fleet))))
        else:
            order = _best(fleet.scores(prefix), within, 2)
        return Choice(_ids(fleet, order[np.argsort(fleet.by_weight(loads)[order], kind="stable")]))


def _within(fleet: Fleet, loads: Floats, requests: Floats, share: float, seats: float) -> Flags:
    within: Flags = (fleet.by_weight(loads) <= share) & (fleet.by_weight(requests + 1) <= seats)
    # Where all are full, or by rounding, or for loads that are no numbers, nobody may be left.
    return within if within.any() else np.ones(len(fleet), dtype=np.bool_)


def _best(scores: Scores, within: Flags, count: int) -> Positions:
    """The positions of the lowest scores within, in their order; at most `count`, at least one."""
    allowed: Positions = within.nonzero()[0]
    theirs = scores[allowed]
    if count == 1:
        return allowed[[int(theirs.argmin())]]
    if len(allowed) > count:
        first = theirs.argpartition(count)[:count]
        allowed, theirs = allowed[first], theirs[first]
    order: Positions = allowed[theirs.argsort()]
    return order


def _ids(fleet: Fleet, order: Positions) -> tuple[str, ...]:
    return tuple(map(fleet.ids.__getitem__, order.tolist()))
