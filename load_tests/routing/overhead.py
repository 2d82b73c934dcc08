"""`python -m load_tests.routing.overhead`: what choosing a replica costs a router.

A choice is all that a router's policy does for a request with a grammar that none waits for: it arrives, is ranked by what is known of the
loads and of the grammar's popularity, is released, and counts until it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.quantiles import quantile
from deployments.reporting.report import BenchReport, Row, Target
from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched
from router.parameters import Parameters
from router.replica_load import LoadReport

PACKAGES = ("maskcast", "numpy")
BOUNDS_US = {64: 150.0, 2000: 1000.0}
SCHEMAS, SEATS = 5000, 256
WAITING, TENANTS, TICKS, TICK_US = 1_792, (1, 500), 20, 10_000.0
"""As many requests as one tenant may have waiting at an ingress; ticks come four times a second, and an event loop waits for each."""
UNDER_WAY = 30
"""Requests on a replica."""


def main(
    requests: Annotated[int, typer.Option(min=100, help="choices in each round")] = 2000,
    rounds: Annotated[int, typer.Option(min=1, help="turns of all fleets")] = 5,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure the time to choose a replica of 64 and of 2,000, and of a tick where nothing can go."""
    rows = [row for number in range(rounds) for replicas in BOUNDS_US for row in _rows(replicas, requests, number)]
    ticks = [_tick_row(tenants) for tenants in TENANTS]
    command = f"python -m load_tests.routing.overhead --requests {requests} --rounds {rounds}"
    report = BenchReport.here(command, PACKAGES, [*_targets(rows), *map(_tick_target, ticks)], [*rows, *ticks])
    console = Console()
    for row in rows:
        console.print(
            f"{row['replicas']:6,} replicas, round {row['round']}: median {row['p50_us']:.0f} µs, p99 {row['p99_us']:.0f} µs",
            highlight=False,
        )
    raise typer.Exit(report.publish(console, json_out))


def _rows(replicas: int, requests: int, number: int) -> list[Row]:
    taken = _choose(replicas, requests, Random(number))
    p50, p99 = (round(quantile(taken, share) or 0.0, 1) for share in (0.5, 0.99))
    return [{"replicas": replicas, "round": number + 1, "choices": requests, "p50_us": p50, "p99_us": p99}]


def _tick_row(tenants: int) -> Row:
    """The fastest of some ticks, in processor time, of a flood that waits for two replicas whose seats are all taken."""
    now = 0.0
    policy = Dispatcher(Random(tenants), lambda: now, Parameters(seats=SEATS, prefill_budget=2048.0))
    policy.adopt(Fleet(("first", "second")))
    for number in range(WAITING + 2 * SEATS):
        policy.arrived(Dispatched(f"request-{number}", f"grammar-{number}", 50, tenant=f"tenant-{number % tenants}"), now)
    policy.tick(now)
    taken = []
    for _ in range(TICKS):
        now += Parameters().retry_s
        begun = time.process_time()
        released = policy.tick(now)
        taken.append(time.process_time() - begun)
        assert not released, "all seats are taken"
    return {"tenants": tenants, "waiting": WAITING, "tick_us": round(min(taken) * 1e6, 1)}


def _tick_target(row: Row) -> Target:
    name = f"a tick while {row['waiting']:,} requests of {row['tenants']} tenants wait for seats"
    return Target.at_most(name, row["tick_us"], TICK_US, "µs")


def _targets(rows: Sequence[Row]) -> list[Target]:
    """Medians over the rounds."""
    found = []
    for replicas, bound in BOUNDS_US.items():
        p50 = quantile([row["p50_us"] for row in rows if row["replicas"] == replicas], 0.5)
        found.append(Target.at_most(f"choosing one of {replicas:,} replicas, median", p50, bound, "µs"))
    return found


def _choose(replicas: int, requests: int, random: Random) -> list[float]:
    """Microseconds of each choice, on a fleet that is as busy as usual."""
    policy = Dispatcher(random, time.time, Parameters(seats=SEATS))
    policy.adopt(Fleet(f"replica-{number}" for number in range(replicas)))
    for replica in policy.fleet.ids:
        policy.reported(LoadReport(replica, time.time() - 1, random.randrange(2 * UNDER_WAY), random.randrange(2000), 12.0))
    asked = [
        Dispatched(str(number), f"{random.randrange(SCHEMAS):064x}", 300, f"{random.randrange(SCHEMAS):016x}") for number in range(requests)
    ]
    taken = []
    for number, request in enumerate(asked):
        started = time.perf_counter()
        policy.arrived(request, started)
        policy.tick(started)
        policy.gone(str(number - UNDER_WAY))
        taken.append((time.perf_counter() - started) * 1e6)
    return taken


if __name__ == "__main__":
    typer.run(main)
