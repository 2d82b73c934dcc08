"""One router's whole policy, put together: affinity by what the board knows, and grouping ahead of it; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from router.affinity import RANKS, Affinity, AffinityLimits
from router.dividing import Spare
from router.fleet import Fleet
from router.grouping import Grouping, GroupingLimits, Release, Waiting
from router.load import LoadBoard, LoadReport
from router.popularity import Popularity

UNLIMITED = 1 << 30
QUEUED_STEPS = 4
KEPT_FREE = 1 / 16


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A request as the policy sees it: `name` is its own and nobody else's; an empty `key` is no grammar; `tokens` are to be prefilled,
    prompt and forced text together; prompts of one `prefix` begin alike, and an empty one says nothing."""

    name: str
    key: str = ""
    tokens: int = 0
    prefix: str = ""


class Dispatcher:
    """A request with a grammar may wait for its group (`arrived`, and a `Release` of `tick`) or be ranked at once (`ranks`), as all others
    are. It counts from its release, or from `sent`, until `gone`.

    Where all seats are taken, requests wait here, and so many seats as `KEPT_FREE` of all stay free until a group of that size can have
    them: requests that start in one step are in the same states of their grammar for a while, and share their masks.

    `clock` is wall clock time, in seconds; `arrived` and `tick` are told the time of a clock that does not run backwards.
    """

    def __init__(self, random: Random, clock: Callable[[], float], affinity: AffinityLimits, grouping: GroupingLimits) -> None:
        self._affinity = Affinity(random, affinity)
        self._board = LoadBoard(clock)
        self._popularity = Popularity(clock)
        self._seats = affinity.seats
        if math.isfinite(self._seats):
            grouping = replace(grouping, together=max(grouping.together, int(self._seats * KEPT_FREE)))
        self._grouping = Grouping(self._group_ranks, self._spare, grouping, self._prefers, self._released)
        self._budget = grouping.prefill_budget
        self._waiting: dict[str, Dispatched] = {}
        self._under_way: set[str] = set()

    def __len__(self) -> int:
        """Requests that wait or are under way."""
        return len(self._waiting) + len(self._under_way)

    @property
    def fleet(self) -> Fleet:
        return self._board.fleet

    def adopt(self, fleet: Fleet) -> None:
        """From now on the replicas are these."""
        self._board.adopt(fleet)

    def reported(self, report: LoadReport) -> None:
        """That replica may have room now: `tick` asks it."""
        self._board.reported(report)
        self._grouping.roomier(report.replica)

    def report(self, replica: str) -> LoadReport | None:
        """The last one that counted."""
        return self._board.report(replica)

    def arrived(self, request: Dispatched, now: float) -> None:
        """It waits for its group, until `tick` releases it."""
        self._waiting[request.name] = request
        self._grouping.arrived(Waiting(request.name, request.key, request.tokens, now, request.prefix))

    def tick(self, now: float) -> list[Release]:
        """Who goes now, and counts from now on as sent where its release says."""
        return self._grouping.tick(now)

    def next_tick(self) -> float | None:
        """When to tick again if nothing arrives before; None when nobody waits."""
        return self._grouping.next_tick()

    def ranks(self, request: Dispatched, avoid: str = "") -> tuple[str, ...]:
        """Replicas, the best one first; `avoid` is not among them, unless there is no other."""
        popularity = self._popularity.share(request.key) if request.key else 0.0
        chosen = self._choose(request.key, request.prefix, RANKS + bool(avoid), popularity)
        return tuple(replica for replica in chosen if replica != avoid) or chosen

    def sent(self, request: Dispatched, replica: str) -> None:
        """It goes there, whatever was said of it before."""
        if request.name not in self._under_way:
            self._popularity.asked(request.key)
        self._under_way.add(request.name)
        self._board.routed(request.name, replica, request.tokens)

    def gone(self, name: str) -> None:
        """A request has ended or was cancelled, and `tick` asks its replica for room; unknown ones change nothing."""
        if self._waiting.pop(name, None) is not None:
            self._grouping.left(name)
        self._under_way.discard(name)
        if (replica := self._board.completed(name)) is not None:
            self._grouping.roomier(replica)

    def _choose(self, key: str, prefix: str, ranks: int, popularity: float) -> tuple[str, ...]:
        board = self._board
        waiting = len(self._waiting) / board.share()
        chosen = self._affinity.choose(self.fleet, board.loads(), key or None, prefix or None, ranks, popularity, board.requests(), waiting)
        return chosen.replicas

    def _group_ranks(self, key: str, tokens: int, prefix: str) -> Sequence[str]:
        """As many as the tokens take: a rare grammar rather waits a little at home, where a popular one goes wherever there is room."""
        needed = 1 + int(tokens / (self._budget * self._board.share()))
        popularity = self._popularity.share(key)
        popular = not self._affinity.rarity(self._board.fleet, popularity)
        return self._choose(key, prefix, needed + RANKS * popular, popularity)

    def _prefers(self, prefix: str, replicas: Sequence[str]) -> Sequence[int]:
        fleet = self._board.fleet
        scores = fleet.scores(prefix, np.array([fleet.positions[replica] for replica in replicas]))
        order: Sequence[int] = np.argsort(scores).tolist()
        return order

    def _released(self, release: Release) -> None:
        for name in release.requests:
            self.sent(self._waiting.pop(name), release.replica)

    def _spare(self, replica: str) -> Spare:
        """Our share of the seats that are free there, and of a step's tokens, as long as no more than `QUEUED_STEPS` wait there: other
        routers are about to send theirs. What a replica cannot admit waits here, where it finds others of its grammar."""
        share, queued = self._board.share(), self._board.backlog(replica)
        tokens = int(min(self._budget, QUEUED_STEPS * self._budget - queued) * share)
        if math.isinf(self._seats):
            return Spare(tokens, UNLIMITED)
        at, fleet = self.fleet.positions[replica], self.fleet
        free = self._seats * float(fleet.weights[at]) - float(self._board.requests()[at])
        return Spare(tokens, math.ceil(free * share))
