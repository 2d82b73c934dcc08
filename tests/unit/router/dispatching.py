"""Dispatchers for tests, and what they are told and tell."""

from __future__ import annotations

from random import Random
from typing import Any

from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched, Release
from router.parameters import Parameters
from tests.unit.router.clock import Clock

KEYED = Dispatched("any", "key")


def dispatcher(replicas: str = "abcd", clock: Clock | None = None, steady: Clock | None = None, **parameters: Any) -> Dispatcher:
    made = Dispatcher(Random(5), clock or Clock(), Parameters(**parameters), steady)
    made.adopt(Fleet(replicas))
    return made


def home(policy: Dispatcher, request: Dispatched = KEYED) -> str:
    return policy.ranks(request, 1)[0]


def full(seats: int, replicas: str = "a", clock: Clock | None = None, **parameters: Any) -> Dispatcher:
    """All seats are taken by requests that are named by their replica and a number."""
    policy = dispatcher(replicas, clock, seats=seats, **parameters)
    for replica in replicas:
        for number in range(seats):
            policy.sent(Dispatched(f"{replica}{number}", f"other {replica}{number}"), replica)
    return policy


def arrive(policy: Dispatcher, *requests: Dispatched, at: float = 5.0) -> None:
    for request in requests:
        policy.arrived(request, at)


def released(releases: list[Release]) -> list[tuple[str, ...]]:
    return [release.requests for release in releases]
