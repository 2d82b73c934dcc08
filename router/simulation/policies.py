"""The ways of routing that are compared: what one router process does with a request."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Protocol

from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched
from router.parameters import Parameters
from router.replica_load import LoadReport
from router.simulation.ablation import ablated
from router.simulation.engine import EngineModel
from router.simulation.traffic import Request

Sending = tuple[Request, str]
"""A request and the replica it goes to."""
Clock = Callable[[], float]
ROUND_ROBIN, POWER_OF_TWO, CONSISTENT, MASKCAST = POLICIES = ("round robin", "power of two", "consistent hash", "maskcast")


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
    """By grammar; requests wait for room where `waits`, and go at once otherwise."""

    def __init__(self, random: Random, clock: Clock, parameters: Parameters, waits: bool) -> None:
        self._dispatcher = Dispatcher(random, clock, parameters)
        self._clock = clock
        self._waits = waits
        self._ungrouped: list[Request] = []
        self._requests: dict[str, Request] = {}

    def adopt(self, fleet: Fleet) -> None:
        self._dispatcher.adopt(fleet)

    def reported(self, report: LoadReport) -> None:
        self._dispatcher.reported(report)

    def arrived(self, request: Request) -> None:
        if self._waits and (request.key is not None or self._requests):
            self._requests[request.name] = request
            self._dispatcher.arrived(_dispatched(request), self._clock())
        else:
            self._ungrouped.append(request)

    def completed(self, request: Request) -> None:
        self._dispatcher.gone(request.name)

    def tick(self, now: float) -> list[Sending]:
        if not len(self._dispatcher.fleet):
            return []
        alone, self._ungrouped = self._ungrouped, []
        return [*map(self._alone, alone), *self._together(now)]

    def next_tick(self, now: float) -> float | None:
        return self._dispatcher.next_tick()

    def _alone(self, request: Request) -> Sending:
        dispatched = _dispatched(request)
        replica = self._dispatcher.ranks(dispatched, 1)[0]
        self._dispatcher.sent(dispatched, replica)
        return request, replica

    def _together(self, now: float) -> list[Sending]:
        releases = self._dispatcher.tick(now)
        return [(self._requests.pop(name), release.replica) for release in releases for name in release.requests]


def _dispatched(request: Request) -> Dispatched:
    return Dispatched(request.name, request.key, request.prompt_tokens, request.prefix or None)


def policies(
    random: Random, clock: Clock, queue: Callable[[str], int], engine: EngineModel, without: Sequence[str] = ()
) -> dict[str, Callable[[], Policy]]:
    """By name, how a router of each kind is made; `without` some heuristics of ours."""

    def own() -> Random:
        return Random(random.randrange(1 << 30))

    unbounded = Parameters(bound=math.inf)
    ours = ablated(Parameters(seats=engine.seats, prefill_budget=engine.prefill_budget), without)
    return {
        ROUND_ROBIN: lambda: RoundRobin(own()),
        POWER_OF_TWO: lambda: PowerOfTwo(own(), queue),
        CONSISTENT: lambda: Schema(own(), clock, unbounded, waits=False),
        MASKCAST: lambda: Schema(own(), clock, ours, waits=True),
    }
