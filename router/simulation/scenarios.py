"""What is played: steady traffic, a burst of one grammar, replicas that fail, replicas that join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from router.simulation.traffic import Burst, Request, Traffic, arrivals
from router.simulation.world import Change, Scenario

STEADY, BURST, FAILURES, SCALE_UP = "steady", "burst", "failures", "scale-up"
FAILING, JOINING = 0.1, 0.25
BURST_PER_REPLICA = 20
BURST_RANK = 40


@dataclass(frozen=True, slots=True)
class Size:
    """How large everything is; `rate` in requests a second and replica, `routers` processes route independently."""

    replicas: int = 64
    schemas: int = 5000
    seconds: float = 5.0
    rate: float = 30.0
    zipf: float = 1.0
    unkeyed: float = 0.1
    routers: int = 4
    report_s: float = 2.0


def synthetic(size: Size, seed: int) -> list[Scenario]:
    """The same steady traffic in each; what happens in the middle is what differs. The first quarter is warm-up."""
    traffic = Traffic(size.seconds, size.rate * size.replicas, size.schemas, size.zipf, size.unkeyed)
    middle = size.seconds / 2
    # Not the most popular grammar: its replicas are the busiest anyway.
    burst = Burst(middle, BURST_PER_REPLICA * size.replicas, min(BURST_RANK, size.schemas - 1))
    steady, sudden = arrivals(traffic, seed), arrivals(replace(traffic, bursts=[burst]), seed)
    return [
        _scenario(STEADY, size, steady),
        _scenario(BURST, size, sudden),
        _scenario(FAILURES, size, steady, Change(middle, -max(1, round(FAILING * size.replicas)))),
        _scenario(SCALE_UP, size, steady, Change(middle, max(1, round(JOINING * size.replicas)))),
    ]


def recorded(size: Size, requests: Sequence[Request]) -> list[Scenario]:
    """What a trace holds, as it was."""
    return [replace(_scenario("recorded", size, requests), warm_up_s=0.0)]


def _scenario(name: str, size: Size, requests: Sequence[Request], *changes: Change) -> Scenario:
    return Scenario(name, requests, size.replicas, size.routers, changes, size.report_s, warm_up_s=size.seconds / 4)
