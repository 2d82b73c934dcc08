"""What is played: steady traffic and what can happen to it, and what is harder than that: full seats, few calls, replicas that are slow,
uneven or hang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from router.simulation.engine import EngineModel
from router.simulation.traffic import Burst, Request, Traffic, arrivals
from router.simulation.world import Change, Hang, Scenario

STEADY, BURST, FAILURES, SCALE_UP = "steady", "burst", "failures", "scale-up"
BATCH, OVERLOAD, SLOW, PROMPTS = "batch", "overload", "slow replica", "shared prompts"
CALM, FULL, CPU, HANG, ALONE = "calm", "full seats", "cpu", "hang", "hang, one router"
NAMES = STEADY, BURST, FAILURES, SCALE_UP, BATCH, OVERLOAD, SLOW, PROMPTS, CALM, FULL, CPU, HANG, ALONE
FAILING, JOINING = 0.1, 0.25
"""Shares of the replicas."""
BURST_PER_REPLICA = 20
BURST_RANK = 40
"""Not the most popular grammar: its replicas are the busiest anyway."""
CALM_TIMES, CALM_RATE = 12.0, 60.0
"""So many times as long, at so small a part of the rate: half a request a second and replica, by default."""
CPU_ENGINE = EngineModel(0.02, 0.001, 0.0005, 2048, 64, 8, 48, fetch_s=0.05, compile_s=0.1, noise=0.4, noise_s=1.0)
"""Of `python -m load_tests.routing`: engines that share two cores, with steps of a tenth of a second that take now more, now less.
Noise, states and how long requests are alike are such that grammars held, loads and rows differ between policies as they do there."""


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
    """The same steady traffic in the first four, where what happens in the middle is what differs; the others are smaller. The first
    quarter is warm-up, but where the loop is closed."""
    small = replace(size, replicas=max(2, size.replicas // 4), schemas=max(1, size.schemas // 10))
    return [*_steady(size, seed), *_open(small, seed), *_closed(small, seed)]


def recorded(size: Size, requests: Sequence[Request]) -> list[Scenario]:
    """What a trace holds, as it was."""
    return [replace(_scenario("recorded", size, requests), warm_up_s=0.0)]


def _steady(size: Size, seed: int) -> list[Scenario]:
    traffic, middle = _traffic(size), size.seconds / 2
    burst = Burst(middle, BURST_PER_REPLICA * size.replicas, min(BURST_RANK, size.schemas - 1))
    steady, sudden = arrivals(traffic, seed), arrivals(replace(traffic, bursts=[burst]), seed)
    return [
        _scenario(STEADY, size, steady),
        _scenario(BURST, size, sudden),
        _scenario(FAILURES, size, steady, Change(middle, -max(1, round(FAILING * size.replicas)))),
        _scenario(SCALE_UP, size, steady, Change(middle, max(1, round(JOINING * size.replicas)))),
    ]


def _open(size: Size, seed: int) -> list[Scenario]:
    """A list of documents that comes at one moment; more requests than 64 seats answer; a slow replica; prompts that many schemas share;
    and next to nothing to do, for long."""
    traffic = _traffic(size)
    calm = replace(size, seconds=CALM_TIMES * size.seconds, rate=size.rate / CALM_RATE, schemas=max(1, size.schemas // 5))
    batch = Burst(size.seconds / 2, 2 * BURST_PER_REPLICA * size.replicas, min(BURST_RANK, size.schemas - 1), 0.1, 256)
    prompts = replace(traffic, prompt_tokens=800, prefixed=0.8, shared_prefixes=8 * size.replicas, unkeyed=0.3)
    few_seats = EngineModel(seats=64)
    return [
        _scenario(BATCH, size, arrivals(replace(traffic, bursts=[batch]), seed)),
        replace(_scenario(OVERLOAD, size, arrivals(replace(traffic, rate=1.6 * traffic.rate), seed)), engine=few_seats),
        replace(_scenario(SLOW, size, arrivals(traffic, seed)), slow=1),
        replace(_scenario(PROMPTS, size, arrivals(prompts, seed)), engine=EngineModel(prefixes=16)),
        _scenario(CALM, calm, arrivals(_traffic(calm), seed)),
    ]


def _closed(size: Size, seed: int) -> list[Scenario]:
    """Half as many clients again as there are seats. `cpu` is `python -m load_tests.routing`: 4 engines, one router, 64 schemas."""
    seconds = size.seconds
    few = replace(size, replicas=min(4, size.replicas), report_s=1.0)
    alone, pair = replace(few, routers=1), replace(few, routers=2)
    popular = Traffic(1.0, 100 * few.replicas * seconds, 64, 1.1, 0.0, 60, 100)
    full = replace(_traffic(size), seconds=1.0, rate=75 * size.replicas * seconds)
    mixed = replace(_traffic(few), seconds=1.0, rate=150 * few.replicas * seconds, schemas=100)
    few_seats, hang = EngineModel(seats=32), Hang(seconds / 2, 8 * seconds)
    return [
        _clients(FULL, size, full, seed, EngineModel(seats=64)),
        _clients(CPU, alone, popular, seed, CPU_ENGINE),
        replace(_clients(HANG, pair, mixed, seed, few_seats), hang=hang),
        replace(_clients(ALONE, alone, mixed, seed, few_seats), hang=hang),
    ]


def _traffic(size: Size) -> Traffic:
    return Traffic(size.seconds, size.rate * size.replicas, size.schemas, size.zipf, size.unkeyed)


def _clients(name: str, size: Size, traffic: Traffic, seed: int, engine: EngineModel) -> Scenario:
    clients = size.replicas * engine.seats * 3 // 2
    return replace(_scenario(name, size, arrivals(traffic, seed)), warm_up_s=0.0, clients=clients, engine=engine)


def _scenario(name: str, size: Size, requests: Sequence[Request], *changes: Change) -> Scenario:
    return Scenario(name, requests, size.replicas, size.routers, changes, size.report_s, warm_up_s=size.seconds / 4)
