"""One router's whole policy, put together: affinity by what the board knows, and grouping ahead of it; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from router.affinity import RANKS, Affinity
from router.dividing import Spare
from router.fleet import Fleet, Floats
from router.grouping import Grouping, Release, Waiting
from router.load import LoadBoard, LoadReport
from router.parameters import Parameters
from router.popularity import Popularity

UNLIMITED = 1 << 30
_ALONE = "\0"


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A request as the policy sees it: `name` is its own and nobody else's; an empty `key` is no grammar; `tokens` are to be prefilled,
    prompt and forced text together; prompts of one `prefix` begin alike, and an empty one says nothing."""

    name: str
    key: str = ""
    tokens: int = 0
    prefix: str = ""


class Dispatcher:
    """A request may wait for its group and for room (`arrived`, and a `Release` of `tick`) or be ranked at once (`ranks`). It counts from
    its release, or from `sent`, until `gone`. One without a grammar has no group, but waits for room as all do, or it would overtake.

    Where all seats are taken, requests wait here. A group that is too large for the seats that are free takes none, until `kept_free` of
    all are, or for as long as its turn may take (`hold_s`): requests that start in one step are in the same states of
    their grammar for a while, and share their masks. Who has waited for long leaves a replica that has answered nothing for `silent_s`.

    `clock` is wall clock time, in seconds; `arrived` and `tick` are told the time of a clock that does not run backwards.
    """

    def __init__(self, random: Random, clock: Callable[[], float], parameters: Parameters) -> None:
        self._affinity = Affinity(random, parameters)
        self._clock = clock
        self._board = LoadBoard(clock, parameters)
        self._popularity = Popularity(clock)
        self._parameters = parameters
        self._grouping = Grouping(self._group_ranks, self._spare, parameters, self._prefers, self._released)
        self._waiting: dict[str, Dispatched] = {}
        self._under_way: set[str] = set()
        self._answered_at: dict[str, float] = {}

    def __len__(self) -> int:
        """Requests that wait or are under way."""
        return len(self._waiting) + len(self._under_way)

    @property
    def fleet(self) -> Fleet:
        return self._board.fleet

    def adopt(self, fleet: Fleet) -> None:
        """From now on the replicas are these, and who waits for one that has gone, or could go to a new one, is asked again."""
        changed = set(self.fleet.ids) ^ set(fleet.ids)
        self._board.adopt(fleet)
        self._answered_at = {replica: at for replica, at in self._answered_at.items() if replica in fleet.positions}
        for replica in changed:
            self._grouping.roomier(replica)

    def reported(self, report: LoadReport) -> None:
        """That replica may have room now: `tick` asks it. What a step of its engine prefills is what theirs all do."""
        if self._board.reported(report):
            self._grouping.roomier(report.replica)
            self._grouping.prefill_budget = report.step_tokens or self._grouping.prefill_budget

    def report(self, replica: str) -> LoadReport | None:
        """The last one that counted."""
        return self._board.report(replica)

    def arrived(self, request: Dispatched, now: float) -> None:
        """It waits for its group, until `tick` releases it."""
        self._waiting[request.name] = request
        self._grouping.arrived(Waiting(request.name, request.key or _ALONE + request.name, request.tokens, now, request.prefix))

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
            self._answered_at[replica] = self._clock()
            self._grouping.roomier(replica)

    def _choose(self, key: str, prefix: str, ranks: int, popularity: float) -> tuple[str, ...]:
        board, waiting = self._board, self._waiting_for()
        chosen = self._affinity.choose(self.fleet, board.loads(), key or None, prefix or None, ranks, popularity, board.requests(), waiting)
        return chosen.replicas

    def _waiting_for(self) -> Floats | None:
        """Requests, of all routers, by position in the fleet."""
        if not (waiting_for := self._grouping.waiting_for):
            return None
        waiting, share = np.zeros(len(self.fleet)), self._board.share()
        for replica, requests in waiting_for.items():
            if (at := self.fleet.positions.get(replica)) is not None:
                waiting[at] = requests / share
        return waiting

    def _group_ranks(self, key: str, tokens: int, prefix: str, has_waited: bool) -> Sequence[str]:
        """As many as the tokens take: a rare grammar rather waits at home, where a popular one goes wherever there is room; but not for
        long at a replica that answers nothing."""
        if key.startswith(_ALONE):
            return self._choose("", prefix, 2, 0.0)
        needed = 1 + int(tokens / (self._grouping.prefill_budget * self._board.share()))
        popularity = self._popularity.share(key)
        popular = not self._affinity.rarity(self._board.fleet, popularity)
        ranks = self._choose(key, prefix, needed + RANKS * (popular or has_waited), popularity)
        return ranks if popular or (has_waited and any(map(self._is_silent, ranks[:1]))) else ranks[:needed]

    def _is_silent(self, replica: str) -> bool:
        return self._clock() - self._answered_at.get(replica, -math.inf) >= self._parameters.silent_s

    def _prefers(self, prefix: str, replicas: Sequence[str]) -> Sequence[int]:
        fleet = self._board.fleet
        scores = fleet.scores(prefix, np.array([fleet.positions[replica] for replica in replicas]))
        order: Sequence[int] = np.argsort(scores).tolist()
        return order

    def _released(self, release: Release) -> None:
        for name in release.requests:
            self.sent(self._waiting.pop(name), release.replica)

    def _spare(self, replica: str, together: int) -> Spare:
        """Our share of the seats that are free there, and of a step's tokens, as long as no more than `queued_steps` wait there: other
        routers are about to send theirs. What a replica cannot admit waits here, where it finds others of its grammar."""
        share, queued, budget = self._board.share(), self._board.backlog(replica), self._grouping.prefill_budget
        steps = self._parameters.queued_steps
        tokens = math.ceil(min(budget, steps * budget - queued) * share)
        if math.isinf(self._parameters.seats):
            return Spare(tokens, UNLIMITED)
        # What others have left is known from the next report on: until then, an engine's queue keeps its seats from standing empty.
        seats = self._parameters.seats * float(self.fleet.weights[self.fleet.positions[replica]]) * (2 - share)
        free = seats - self._board.taken(replica)
        # By what is free for all of us: a small share of it would never be enough.
        is_room = free >= min(together, seats * self._parameters.kept_free)
        return Spare(tokens, math.ceil(free * share) if is_room else 0)
