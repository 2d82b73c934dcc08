"""`python -m load_tests.traces.cost`: processor time of a request by how it is traced.

The service is real but for its engine core, in whose place a stand-in gives each request a token (`load_tests.front_door.pieces`): what
tracing adds stands in front of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer
from rich.console import Console

from deployments.config import Settings, parse_settings
from deployments.reporting.quantiles import median, ratio
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.faults.waiting import wait_for
from load_tests.front_door.processor_time import ProcessorTime, between
from load_tests.reporting.running_service import PACKAGES, running_service
from load_tests.traces.collector import Collector, collecting

if TYPE_CHECKING:
    from ray import serve

CLIENTS = 8
WARM = 200
SENT_S = 30.0
"""For spans to come, which leave once a second."""
TRACED = ("ingress", "replica")
"""The parts of the service that a request passes; no grammar is compiled."""
OFF, UNSAMPLED, TENTH, ALL = ARMS = ("off", "not sampled", "one in ten", "all")
_EVERY = {OFF: 0, UNSAMPLED: 0, TENTH: 10, ALL: 1}
BOUNDS = {UNSAMPLED: 1.05, TENTH: 1.1, ALL: 1.5}


@dataclass(frozen=True, slots=True)
class Window:
    arm: str
    requests: int
    used_s: float

    @property
    def request_ms(self) -> float:
        return self.used_s / self.requests * 1000


def main(
    requests: Annotated[int, typer.Option(min=100, help="of each arm in each round")] = 1000,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Without an endpoint; with one, and requests of which none, a tenth or all are sampled, twice each in every round."""
    windows: list[tuple[int, Window]] = []
    with collecting() as collector:
        telemetry = {"otlp_endpoint": collector.url, "sample_ratio": 0}
        for number in range(rounds):
            for tree, arms in (({}, (OFF,)), ({"telemetry": telemetry}, ARMS[1:])):
                windows += [(number, window) for window in _measured(tree, arms, requests, collector)]
    rows = [_row(number, window) for number, window in windows]
    report = BenchReport.here(f"python -m load_tests.traces.cost --requests {requests} --rounds {rounds}", PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def targets(rows: Sequence[Row]) -> list[Target]:
    """Ratios of medians over rounds."""
    cost = {arm: median(row["request_ms"] for row in rows if row["arm"] == arm) for arm in ARMS}
    return [
        Target.at_most(f"processor time of a request, {arm} / off", ratio(cost[arm], cost[OFF]), bound, "") for arm, bound in BOUNDS.items()
    ]


def _row(number: int, window: Window) -> Row:
    return {"round": number, "arm": window.arm, "requests": window.requests, "request_ms": round(window.request_ms, 4)}


def _measured(tree: dict[str, Any], arms: Sequence[str], requests: int, collector: Collector) -> Iterator[Window]:
    processor_time = ProcessorTime()
    with running_service(tree, _engineless) as url:
        earlier = len(collector)
        asyncio.run(_ask(url, WARM, 1))
        if OFF not in arms:  # what sends the first spans imports what it needs for that
            wait_for(lambda: len(collector) >= earlier + WARM, SENT_S, "the first spans")
        for arm in (*arms, *arms):
            before = processor_time.read()
            asyncio.run(_ask(url, requests, _EVERY[arm]))
            used = between(before, processor_time.read())
            yield Window(arm, requests, sum(used[part] for part in TRACED))


async def _ask(url: str, requests: int, every: int) -> None:
    """So many requests, some at a time, of which every so manieth is sampled; 0: none is."""
    numbers = iter(range(requests))
    body = {"model": parse_settings({}).model.served_name, "prompt": "Go on.", "max_tokens": 1}

    async def client() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            for number in numbers:
                flag = "01" if every and number % every == 0 else "00"
                answer = await http.post("/v1/completions", json=body, headers={"traceparent": f"00-{number + 1:032x}-{'a' * 16}-{flag}"})
                answer.raise_for_status()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def _engineless(settings: Settings) -> serve.Application:
    # Ray reads the environment when it is imported.
    from load_tests.front_door.pieces.engineless import engineless

    return engineless(settings)


if __name__ == "__main__":
    typer.run(main)
