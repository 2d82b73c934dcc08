"""`python -m load_tests.routing`: routing by schema against the less loaded of two replicas.

Each policy serves the same requests over HTTP on a service of its own, as `maskcast serve` starts it, with its Redis: first many schemas
by Zipf's law, all of them compiled before and new to the engines, then one hot schema with most of the traffic. The policies take turns.
All engine figures are read from /metrics. Engines on a CPU get one thread each: here they share the processors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.local.environment import environment
from deployments.reporting.report import BenchReport, Row
from load_tests.reporting.running_service import ONE_THREAD, PACKAGES, running_service
from load_tests.routing import traffic
from load_tests.routing.clients import ask_all, compile_all
from load_tests.routing.figures import HOT, POLICIES, POPULAR, row, targets
from load_tests.routing.page import ALL_METRICS, page_of, settled_page

SEATS = 64
"""Fewer than requests at a time: only what waits can be put together."""
WARM_UP = 64
"""Requests without a schema, before anything is measured."""


def main(
    replicas: Annotated[int, typer.Option(min=2, help="model replicas")] = 4,
    requests: Annotated[int, typer.Option(min=1, help="of all schemas, by Zipf's law")] = 2000,
    hot: Annotated[int, typer.Option(min=1, help="most of them of one schema")] = 600,
    clients: Annotated[int, typer.Option(min=1, help="requests at a time")] = 384,
    turns: Annotated[int, typer.Option(min=1, help="of both policies")] = 2,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare residency, mask rows, fetches, latency and balance of both policies on real engines."""
    console = Console()
    phases = {POPULAR: traffic.popular(requests), HOT: traffic.hot(hot)}
    rows: list[Row] = []
    for turn in range(turns):
        for policy in POLICIES if turn % 2 else POLICIES[::-1]:
            rows += _turn(turn, policy, replicas, clients, phases, lambda one: console.print(one, highlight=False))
    command = f"python -m load_tests.routing --replicas {replicas} --requests {requests} --hot {hot} --clients {clients} --turns {turns}"
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(console, json_out))


def _turn(
    turn: int, policy: str, replicas: int, clients: int, phases: dict[str, list[traffic.Body]], heard: Callable[[Row], None]
) -> Iterator[Row]:
    model = {"num_replicas": replicas, "max_num_seqs": SEATS, "count_mask_rows": True, "cpu_kv_cache_gib": 0.25}
    settings: dict[str, Any] = {"model": model, "router": {"policy": policy}, "http": ALL_METRICS}
    with environment({}, ONE_THREAD), running_service(settings) as url:
        warm_up: traffic.Body = {"messages": [{"role": "user", "content": "Say something."}], "max_tokens": 8}
        asyncio.run(ask_all(url, [warm_up] * WARM_UP, WARM_UP // 4))
        asyncio.run(compile_all(url, traffic.schemas()))
        before = settled_page(url, page_of)
        for phase, bodies in phases.items():
            started = time.perf_counter()
            asked = asyncio.run(ask_all(url, bodies, clients))
            seconds = time.perf_counter() - started
            after = settled_page(url, page_of)
            found = row(turn, policy, phase, asked, seconds, before, after)
            heard(found)
            yield found
            before = after


if __name__ == "__main__":
    typer.run(main)
