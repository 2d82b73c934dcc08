"""One router's whole policy, put together: affinity by what the board knows, and grouping ahead of it; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from random import Random

from router.affinity import Affinity
from router.fleet import Fleet
from router.grouping import Dispatched, Grouping, Places, Release
from router.load import LoadBoard
from router.parameters import Parameters
from router.popularity import Popularity
from router.replica_load import LoadReport
from router.turns.shares import KEPT, Presence, Shares


class Dispatcher:
    """A request may wait for its group and for room (`arrived`, and a `Release` of `tick`) or be ranked at once (`ranks`). It counts from
    its release, or from `sent`, until `gone`. One without a grammar has no group, but waits for room as all do, or it would overtake.

    `clock` is wall clock time in seconds, by which replicas report; `steady` is one that does not run backwards, as the one that `arrived`
    and `tick` are told the time of. Turns are by `shares`, which is to be told what requests cost beyond their prompts.
    """

    def __init__(
        self, random: Random, clock: Callable[[], float], parameters: Parameters, steady: Callable[[], float] | None = None
    ) -> None:
        self._affinity = Affinity(random, parameters)
        self._steady = steady or clock
        self._board = LoadBoard(clock, parameters)
        self._popularity = Popularity(self._steady, parameters.half_life_s)
        self._parameters = parameters
        self._prefill_budget = parameters.prefill_budget
        self.shares = Shares()
        self._kept = 0
        self._now = 0.0
        self._grouping = Grouping(self._places, self._seats, self._released, parameters, self._order, self._none_left)
        self._waiting: dict[str, Dispatched] = {}
        self._under_way: dict[str, Dispatched] = {}
        self._answered_at: dict[str, float] = {}

    def __len__(self) -> int:
        """Requests that wait or are under way."""
        return len(self._waiting) + len(self._under_way)

    @property
    def fleet(self) -> Fleet:
        return self._board.fleet

    def adopt(self, fleet: Fleet) -> None:
        """From now on the replicas are these, and `tick` asks all again who wait: for one that has gone, or could go to a new one."""
        self._board.adopt(fleet)
        self.shares.seats = self._parameters.seats * len(fleet) if len(fleet) else math.inf
        self._answered_at = {replica: at for replica, at in self._answered_at.items() if replica in fleet.positions}
        self._grouping.ask_all()

    def reported(self, report: LoadReport) -> None:
        """That replica may have room now: `tick` asks it. What a step of its engine prefills is what theirs all do."""
        if self._board.reported(report):
            self._grouping.room_freed(report.replica)
            if report.step_ms > 0:
                self._answered_at[report.replica] = self._steady()
            self._prefill_budget = report.step_tokens or self._prefill_budget

    def arrived(self, request: Dispatched, now: float) -> None:
        """It waits for its group, until `tick` releases it."""
        if request.name not in self._waiting:
            self._now = now
            waiting = self._waiting[request.name] = replace(request, arrived_at=now)
            self.shares.came(request.tenant, request.sequences, request.weight, now)
            self._grouping.arrived(waiting)

    def present(self) -> Mapping[str, Presence]:
        """The tenants that this router has requests of."""
        return self.shares.present(self._steady())

    def heard(self, elsewhere: Mapping[str, Presence]) -> None:
        """Other routers have requests of these tenants; who waits asks again within `retry_s`."""
        self.shares.heard(elsewhere, self._steady())

    def tick(self, now: float) -> list[Release]:
        """Who goes now, and counts from now on as sent where its release says."""
        self._now = now
        self._kept = self.shares.kept(now)
        return self._grouping.tick(now)

    def next_tick(self) -> float | None:
        """When to tick again if nothing arrives before; None when nobody waits."""
        return self._grouping.next_tick()

    def ranks(self, request: Dispatched, count: int) -> tuple[str, ...]:
        """At most so many replicas, the best one first."""
        loads = self._board.loads(self._grouping.waiting_for)
        if request.key is None:
            return self._affinity.less_loaded(loads, request.prefix)
        popularity = self._popularity.share(request.key) if self._parameters.room_for_rare else 0.0
        return self._affinity.choose(loads, request.key, popularity, count)

    def sent(self, request: Dispatched, replica: str) -> None:
        """It goes there, whatever was said of it before."""
        if request.name not in self._under_way:
            self._popularity.asked(request.key)
            if (waited := self._waiting.pop(request.name, None)) is not None:
                self._grouping.left(request.name)
            else:
                self.shares.came(request.tenant, request.sequences, request.weight, self._now)
            counted = self._under_way[request.name] = waited or request
            self.shares.seated(counted.tenant, counted.sequences, counted.tokens)
        self._board.routed(request.name, replica, request.tokens, request.sequences)

    def gone(self, name: str) -> None:
        """A request has ended or was cancelled, and `tick` asks its replica for room; unknown ones change nothing."""
        if (waited := self._waiting.pop(name, None)) is not None:
            self._grouping.left(name)
            self.shares.left(waited.tenant, waited.sequences, self._now)
        if (request := self._under_way.pop(name, None)) is not None:
            self.shares.ended(request.tenant, request.sequences, self._now)
        if (replica := self._board.completed(name)) is not None:
            self._answered_at[replica] = self._steady()
            self._grouping.room_freed(replica)

    def _places(self, oldest: Dispatched, tokens: int, has_waited: bool) -> Places:
        """As many as the tokens take: a grammar rather waits at home than to be brought elsewhere, but not for long at a replica that
        answers nothing."""
        each = self._prefill_budget * self._board.share()
        needed = 1 + int(tokens / each)
        ranks = self.ranks(oldest, needed + has_waited)
        silent = has_waited and bool(ranks) and self._is_silent(ranks[0])
        if silent and len(ranks) > 1:
            return Places(ranks[1:], each, self._is_silent(ranks[1]))
        return Places(ranks if oldest.key is None else ranks[:needed], each, silent)

    def _none_left(self, full: Set[str], has_waited_long: bool) -> bool:
        """Replicas that are silent may be given what has waited for long, full or not."""
        ids = self.fleet.ids
        return len(full) >= len(ids) and full >= set(ids) and not (has_waited_long and any(map(self._is_silent, ids)))

    def _is_silent(self, replica: str) -> bool:
        return self._steady() - self._answered_at.get(replica, -math.inf) >= self._parameters.patience_s

    def _released(self, release: Release) -> None:
        for name in release.requests:
            self.sent(self._waiting[name], release.replica)
        self._kept = self.shares.kept(self._now)

    def _order(self, tenant: str) -> tuple[bool, bool, float, float]:
        last, *order = self.shares.order(tenant, self._kept)
        # Who is given nothing would keep places from others.
        return last and self.shares.room(tenant) <= 0, last, order[0], order[1]

    def _seats(self, replica: str, together: int, oldest: Dispatched) -> float:
        """How many may go there at a time: our share of the seats that are free, as other routers are about to send theirs. What a replica
        cannot admit waits here, where it finds others of its grammar. See `router.grouping.Seats`."""
        if math.isinf(self._parameters.seats):
            return math.inf
        share = self._board.share()
        # What others have left is known from the next report on: until then, an engine's queue keeps its seats from standing empty.
        seats = self._parameters.seats * (2 - share)
        free = seats - self._board.taken(replica)
        most = math.inf
        if not (self._kept and self.shares.may_take(oldest.tenant, oldest.sequences, self._kept)):
            free -= self._kept / len(self.fleet)
            most = self.shares.room(oldest.tenant)
        needed = min(together, seats * self._parameters.kept_free)
        if len(self.shares) > 1:
            # In the engine's queue, one of many sequences would keep the others' from seats.
            needed = max(needed, min(oldest.sequences, seats * (1 - KEPT)))
        # By what is free for all of us: a small share of it would never be enough.
        return min(math.ceil(free * share), most) if free >= needed else 0
