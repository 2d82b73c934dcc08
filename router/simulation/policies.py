"""The ways of routing that are compared: what one router process does with a request."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Protocol

from router.affinity import RANKS, Affinity, AffinityLimits
from router.dividing import Spare
from router.fleet import Fleet
from router.grouping import Grouping, GroupingLimits, Waiting
from router.load import LoadBoard, LoadReport
from router.simulation.engine import EngineModel
from router.simulation.traffic import Request

Sending = tuple[Request, str]
"""A request and the replica it goes to."""
Clock = Callable[[], float]
UNLIMITED = 1 << 30
ROUND_ROBIN, POWER_OF_TWO, CONSISTENT, MASKCAST = POLICIES = ("round robin", "power of two", "consistent hash", "maskcast")
QUEUED_STEPS = 4


class Policy(Protocol):
    """One router's. It sees what a router process can see: its own requests, and reports that are some seconds old."""

    def adopt(self, fleet: Fleet) -> None: ...

    def reported(self, report: LoadReport) -> None: ...

    def arrived(self, request: Request) -> None: ...

    def completed(self, request: Request) -> None: ...

    def tick(self, now: float) -> Sequence[Sending]:
        """Requests that go now."""
        ...

    def next_tick(self, now: float) -> float | None: ...


class RoundRobin:
    """One after the other, from a place of its own."""

    def __init__(self, random: Random) -> None:
        self._turns = count(random.randrange(1 << 30))
        self._waiting: list[Request] = []
        self._fleet = Fleet()

    def adopt(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def reported(self, report: LoadReport) -> None:
        pass

    def arrived(self, request: Request) -> None:
        self._waiting.append(request)

    def completed(self, request: Request) -> None:
        pass

    def tick(self, now: float) -> list[Sending]:
        if not len(self._fleet):
            return []
        waiting, self._waiting = self._waiting, []
        return [(request, self._fleet.ids[next(self._turns) % len(self._fleet)]) for request in waiting]

    def next_tick(self, now: float) -> float | None:
        return None


class PowerOfTwo(RoundRobin):
    """The less loaded of two random replicas, whose queues are looked at when the request comes: fresher than any report."""

    def __init__(self, random: Random, queue: Callable[[str], int]) -> None:
        super().__init__(random)
        self._random = random
        self._queue = queue

    def tick(self, now: float) -> list[Sending]:
        if not len(self._fleet):
            return []
        waiting, self._waiting = self._waiting, []
        return [(request, min(self._random.choices(self._fleet.ids, k=2), key=self._queue)) for request in waiting]


class Schema:
    """By grammar: `limits` of the load bound; requests with a grammar are grouped where `grouping` is given."""

    def __init__(self, random: Random, clock: Clock, limits: AffinityLimits, grouping: GroupingLimits | None = None) -> None:
        self._affinity = Affinity(random, limits)
        self._clock = clock
        self._board = LoadBoard(clock)
        self._grouping = None if grouping is None else Grouping(self._ranks, self._spare, grouping)
        self._budget = (grouping or GroupingLimits()).prefill_budget
        self._ungrouped: list[Request] = []
        self._requests: dict[str, Request] = {}

    def adopt(self, fleet: Fleet) -> None:
        self._board.adopt(fleet)

    def reported(self, report: LoadReport) -> None:
        self._board.reported(report)

    def arrived(self, request: Request) -> None:
        if self._grouping is None or request.key is None:
            self._ungrouped.append(request)
        else:
            self._requests[request.name] = request
            self._grouping.arrived(Waiting(request.name, request.key, request.prompt_tokens, self._clock()))

    def completed(self, request: Request) -> None:
        self._board.completed(request.name)

    def tick(self, now: float) -> list[Sending]:
        if not len(self._board.fleet):
            return []
        alone, self._ungrouped = self._ungrouped, []
        return [*self._singly(alone), *self._together(now)]

    def next_tick(self, now: float) -> float | None:
        return None if self._grouping is None else self._grouping.next_tick()

    def _singly(self, requests: Sequence[Request]) -> list[Sending]:
        return [self._send(request, self._choose(request.key)[0]) for request in requests]

    def _together(self, now: float) -> list[Sending]:
        releases = self._grouping.tick(now) if self._grouping else []
        return [self._send(self._requests.pop(name), release.replica) for release in releases for name in release.requests]

    def _send(self, request: Request, replica: str) -> Sending:
        self._board.routed(request.name, replica, request.prompt_tokens)
        return request, replica

    def _choose(self, key: str | None, ranks: int = RANKS) -> tuple[str, ...]:
        return self._affinity.choose(self._board.fleet, self._board.loads(), key, ranks=ranks).replicas

    def _ranks(self, key: str, tokens: int) -> Sequence[str]:
        return self._choose(key, RANKS + int(tokens / (self._budget * self._board.share())))

    def _spare(self, replica: str) -> Spare:
        """Our share of a step, as long as no more than `QUEUED_STEPS` wait there: other routers are about to send theirs. Seats are no
        bound: what a replica cannot admit waits there as well as here."""
        queued = self._board.backlog(replica)
        return Spare(int(min(self._budget, QUEUED_STEPS * self._budget - queued) * self._board.share()), UNLIMITED)


def policies(random: Random, clock: Clock, queue: Callable[[str], int], engine: EngineModel) -> dict[str, Callable[[], Policy]]:
    """By name, how a router of each kind is made."""

    def own() -> Random:
        return Random(random.randrange(1 << 30))

    unbounded = AffinityLimits(bound=math.inf)
    return {
        ROUND_ROBIN: lambda: RoundRobin(own()),
        POWER_OF_TWO: lambda: PowerOfTwo(own(), queue),
        CONSISTENT: lambda: Schema(own(), clock, unbounded),
        MASKCAST: lambda: Schema(own(), clock, AffinityLimits(seats=engine.seats), GroupingLimits(prefill_budget=engine.prefill_budget)),
    }
