"""Discrete events: arrivals, routers, reports, engines that fail, join or hang."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from random import Random
from typing import Any

from router.fleet import Fleet
from router.replica_load import LoadReport
from router.simulation.engine import Answered, Engine, EngineCounts, EngineModel
from router.simulation.policies import Policy, policies
from router.simulation.traffic import Request


@dataclass(frozen=True, slots=True)
class Change:
    """At `at_s` so many replicas join (below 0: fail, with all that they had, which the routers send again)."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class Hang:
    """At `at_s` one replica begins to hang: it takes requests, answers none and reports nothing, until it is given up `for_s` later, and
    its requests are sent again."""

    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Requests in the order of time, on so many replicas, through so many routers, each of which hears of every replica every
    `report_s`, `delay_s` late. What happens before `warm_up_s` does not count as waiting or imbalance.

    With `clients` the loop is closed: each of so many asks at the start, and again as soon as it is answered, whatever time the requests
    name. Of the replicas, the first `slow` ones compute `SLOWNESS` times as slowly as the others."""

    name: str
    requests: Sequence[Request]
    replicas: int
    routers: int = 4
    changes: Sequence[Change] = ()
    report_s: float = 2.0
    delay_s: float = 0.1
    warm_up_s: float = 0.0
    engine: EngineModel = field(default_factory=EngineModel)
    clients: int = 0
    slow: int = 0
    hang: Hang | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. Waits are seconds from arrival to first token, in the order of arrival and after the warm-up, latencies those to the
    last token; who was with a replica that hung is in neither, nor who was `lost`: never answered. `last_s` is when the last request
    arrived, `answered_in_time` how many were answered by then, `ended_s` when all were. `imbalance` holds, for each sample in time, the
    most loaded replica's requests over the mean; `resident` the grammars on each replica at the end; `counts` those of every replica
    there was, the failed ones too."""

    waits_s: Sequence[float]
    latencies_s: Sequence[float]
    last_s: float
    ended_s: float
    answered_in_time: int
    imbalance: Sequence[float]
    resident: Sequence[int]
    counts: Sequence[EngineCounts]
    compiled: int
    fetched: int
    sent_again: int
    lost: int


SAMPLE_S = 0.25
GIVE_UP_S = 600.0
"""Who waits is lost when so long nobody has arrived and nobody has been answered."""
SLOWNESS = 3.0
"""Times: a card that throttles, or a neighbour on the same one."""


class _Kind(IntEnum):
    """Of events; those of one moment are played in this order: a handful arrives before its router ticks."""

    STEP = 0
    LOADED = 1
    CHANGE = 2
    REPORT = 3
    HEARD = 4
    ARRIVAL = 5
    TICK = 6
    SAMPLE = 7


class World:
    """One policy's run, ours perhaps `without` some of its heuristics. Deterministic for a seed."""

    def __init__(self, scenario: Scenario, policy: str, seed: int = 0, without: Sequence[str] = ()) -> None:
        self._scenario = scenario
        self._random = Random(seed)
        self._noise = Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, int, Any]] = []
        self._order = 0
        self._engines: dict[str, Engine] = {}
        self._gone: list[Engine] = []
        self._compiled: set[str] = set()
        make = policies(self._random, lambda: self._now, self._queue, scenario.engine, without)[policy]
        self._routers: list[Policy] = [make() for _ in range(scenario.routers)]
        self._ticks: list[float | None] = [None] * scenario.routers
        self._router_of: dict[str, int] = {}
        self._arrived_s: dict[str, float] = {}
        self._first_s: dict[str, float] = {}
        self._done_s: dict[str, float] = {}
        self._stuck: set[str] = set()
        self._open = 0
        self._ended_s = 0.0
        self._last_s = math.inf
        self._moved_s = 0.0
        self._upcoming = iter(scenario.requests)
        self._answered_in_time = 0
        self._imbalance: list[float] = []
        self._fetched = self._sent_again = self._made = 0

    def run(self, played: Callable[[int], None] | None = None) -> Outcome:
        """To the last answer; `played` hears now and then how many requests have been answered."""
        scenario = self._scenario
        self._join(scenario.replicas)
        for change in scenario.changes:
            self._at(change.at_s, _Kind.CHANGE, change)
        if scenario.hang:
            self._at(scenario.hang.at_s, _Kind.CHANGE, scenario.hang)
        self._at(scenario.report_s, _Kind.REPORT, None)
        self._at(SAMPLE_S, _Kind.SAMPLE, None)
        for _ in range(max(1, scenario.clients)):
            self._next_arrival()
        self._open = len(scenario.requests)
        play: dict[int, Callable[[Any], None]] = {
            _Kind.STEP: lambda engine: self._step(*engine),
            _Kind.LOADED: lambda grammar: self._loaded(*grammar),
            _Kind.CHANGE: self._change,
            _Kind.REPORT: lambda _: self._report(played),
            _Kind.HEARD: self._hear,
            _Kind.ARRIVAL: self._arrive_first,
            _Kind.TICK: self._tick,
            _Kind.SAMPLE: lambda _: self._sample(),
        }
        while self._open and self._now <= self._moved_s + GIVE_UP_S:
            self._now, kind, _, what = heapq.heappop(self._events)
            play[kind](what)
        return self._outcome()

    def _at(self, at_s: float, kind: _Kind, what: object) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_s, kind, self._order, what))

    def _queue(self, replica: str) -> int:
        engine = self._engines[replica]
        return engine.running + engine.waiting

    def _next_arrival(self) -> None:
        request = next(self._upcoming, None)
        if request is not None:
            self._at(self._now if self._scenario.clients else request.at_s, _Kind.ARRIVAL, request)

    def _arrive_first(self, request: Request) -> None:
        self._arrived_s[request.name] = self._moved_s = self._now
        if len(self._arrived_s) == len(self._scenario.requests):
            self._last_s = self._now
        self._arrive(request)
        if not self._scenario.clients:
            self._next_arrival()

    def _arrive(self, request: Request) -> None:
        router = self._router_of.get(request.name)
        if router is None:
            router = self._router_of[request.name] = self._random.randrange(len(self._routers))
        self._routers[router].arrived(request)
        self._tick_at(router, self._now)

    def _tick_at(self, router: int, at_s: float | None) -> None:
        planned = self._ticks[router]
        if at_s is not None and (planned is None or at_s < planned):
            self._ticks[router] = at_s
            self._at(at_s, _Kind.TICK, router)

    def _look(self, router: int) -> None:
        """There may be room for those that wait."""
        if self._routers[router].next_tick(self._now) is not None:
            self._tick_at(router, self._now)

    def _tick(self, router: int) -> None:
        if self._ticks[router] != self._now:
            return
        self._ticks[router] = None
        policy = self._routers[router]
        for request, replica in policy.tick(self._now):
            engine = self._engines[replica]
            planned = engine.next_at
            if engine.arrive(request, self._now):
                self._load(replica, engine, str(request.key))
            self._plan(replica, engine, planned)
        self._tick_at(router, policy.next_tick(self._now))

    def _load(self, replica: str, engine: Engine, key: str) -> None:
        model = self._scenario.engine
        known = key in self._compiled
        self._compiled.add(key)
        self._fetched += known
        self._at(self._now + (model.fetch_s if known else model.compile_s), _Kind.LOADED, (replica, engine, key))

    def _loaded(self, replica: str, engine: Engine, key: str) -> None:
        if self._engines.get(replica) is engine:
            planned = engine.next_at
            engine.loaded(key, self._now)
            self._plan(replica, engine, planned)

    def _plan(self, replica: str, engine: Engine, planned: float | None) -> None:
        if engine.next_at is not None and engine.next_at != planned:
            self._at(engine.next_at, _Kind.STEP, (replica, engine))

    def _step(self, replica: str, engine: Engine) -> None:
        if engine.next_at != self._now or self._engines.get(replica) is not engine:
            return
        for answered in engine.play(self._now):
            self._answer(answered)
        self._plan(replica, engine, None)

    def _answer(self, answered: Answered) -> None:
        request = answered.request
        if not answered.done:
            self._first_s.setdefault(request.name, answered.at_s)
            return
        router = self._router_of[request.name]
        self._routers[router].completed(request)
        self._look(router)
        self._open -= 1
        self._ended_s = self._moved_s = self._done_s[request.name] = answered.at_s
        self._answered_in_time += answered.at_s <= self._last_s
        if self._scenario.clients:
            self._next_arrival()

    def _report(self, played: Callable[[int], None] | None) -> None:
        reports = [_report_of(replica, engine, self._now) for replica, engine in self._engines.items() if not engine.hangs]
        self._at(self._now + self._scenario.delay_s, _Kind.HEARD, reports)
        self._at(self._now + self._scenario.report_s, _Kind.REPORT, None)
        if len(self._done_s) == len(self._arrived_s):
            self._moved_s = self._now
        if played:
            played(len(self._scenario.requests) - self._open)

    def _sample(self) -> None:
        """While there is traffic: a fleet that runs empty is never balanced."""
        loads = [self._queue(replica) for replica in self._engines]
        if any(loads) and self._now >= self._scenario.warm_up_s:
            self._imbalance.append(max(loads) * len(loads) / sum(loads))
        if self._now + SAMPLE_S <= self._last_s:
            self._at(self._now + SAMPLE_S, _Kind.SAMPLE, None)

    def _hear(self, reports: Sequence[LoadReport]) -> None:
        for router, policy in enumerate(self._routers):
            for report in reports:
                policy.reported(report)
            self._look(router)

    def _change(self, change: Change | Hang) -> None:
        if isinstance(change, Hang):
            self._hang(change)
        elif change.replicas > 0:
            self._join(change.replicas)
        else:
            self._fail([replica for replica, engine in self._engines.items() if engine.hangs] or self._any(-change.replicas))

    def _hang(self, hang: Hang) -> None:
        self._engines[self._any(1)[0]].hang()
        self._at(self._now + hang.for_s, _Kind.CHANGE, Change(self._now + hang.for_s, -1))

    def _any(self, count: int) -> list[str]:
        return self._random.sample(sorted(self._engines), min(count, len(self._engines) - 1))

    def _join(self, count: int) -> None:
        model = self._scenario.engine
        for _ in range(count):
            slow = self._made < self._scenario.slow
            self._engines[f"replica-{self._made}"] = Engine(model.slower(SLOWNESS) if slow else model, self._noise)
            self._made += 1
        self._adopt()

    def _fail(self, failed: Sequence[str]) -> None:
        gone = [self._engines.pop(replica) for replica in failed]
        lost = [request for engine in gone for request in engine.requests]
        self._stuck.update(request.name for engine in gone if engine.hangs for request in engine.requests)
        self._gone += gone
        self._adopt()
        self._sent_again += len(lost)
        for request in lost:
            self._routers[self._router_of[request.name]].completed(request)
            self._arrive(request)

    def _adopt(self) -> None:
        fleet = Fleet(self._engines)
        for policy in self._routers:
            policy.adopt(fleet)

    def _outcome(self) -> Outcome:
        arrived = self._arrived_s.items()
        apart = self._stuck | (self._arrived_s.keys() - self._done_s.keys())
        counted = [(name, at_s) for name, at_s in arrived if at_s >= self._scenario.warm_up_s and name not in apart]
        engines = list(self._engines.values())
        counts = [engine.counts for engine in (*engines, *self._gone)]
        resident = [engine.resident for engine in engines]
        return Outcome(
            [self._first_s[name] - at_s for name, at_s in counted],
            [self._done_s[name] - at_s for name, at_s in counted],
            self._last_s,
            self._ended_s,
            self._answered_in_time,
            self._imbalance,
            resident,
            counts,
            len(self._compiled),
            self._fetched,
            self._sent_again,
            self._open,
        )


def _report_of(replica: str, engine: Engine, now: float) -> LoadReport:
    return LoadReport(replica, now, engine.running + engine.waiting, engine.prefill_tokens, engine.mean_step_ms())
