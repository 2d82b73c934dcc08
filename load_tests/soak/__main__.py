"""`python -m load_tests.soak`: many requests over many schemas at a real service, and whether anything of it grows."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from redis import Redis
from rich.console import Console
from rich.progress import Progress

from deployments.local.environment import environment
from deployments.local.redis_server import HOST, RedisServer
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.reporting.running_service import ONE_THREAD, PACKAGES, running_service
from load_tests.soak.driving import FAILED, LOST, Driving
from load_tests.soak.judging import Trend, trends
from load_tests.soak.picture import draw
from load_tests.soak.recorded import written
from load_tests.soak.sampling import Looker, Sample, Sampling
from load_tests.soak.traffic import traffic

WARM = 0.4
"""The share of the requests after which all is warm: where there are ten rounds, all schemas have come four times."""
SAMPLES = 200
"""At least, where they are no more frequent than once in `LEAST_S`."""
LEAST_S = 1.0
SETTINGS: Mapping[str, Any] = {
    "model": {"num_replicas": 2, "masks": "broadcaster", "max_num_seqs": 16, "grammar_memory_mib": 16},
    "http": {"num_replicas": 2, "metrics": "all"},
    "grammar": {"memory_cache_mib": 8},
}
"""Every kind of process that there is. Memories are too small for all schemas: what is taken in takes the place of something, and in each
many times over. (With 64 MiB what an engine's compiler keeps of rules filled up once in 3,000 requests and began anew: memory that the
allocator had handed out went from 235 to 258 MiB and back, three times in a run, which says nothing about growth.)"""


def main(
    requests: Annotated[int, typer.Option(min=100)] = 20_000,
    schemas: Annotated[int, typer.Option(min=1, help="different ones; all come before any comes again")] = 2000,
    minutes: Annotated[float, typer.Option(min=1, help="the requests come evenly over so long")] = 30.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and its picture beside it")] = None,
) -> None:
    """Ask a service many times, sample what its processes hold, and find what grows after warm-up."""
    after = round(WARM * requests)
    samples, ended = _soak(requests, schemas, minutes)
    found = trends(samples, after)
    command = f"python -m load_tests.soak --requests {requests} --schemas {schemas} --minutes {minutes:g}"
    rows = [*map(row, found), {"requests": requests, **ended}, *written(samples)]
    report = BenchReport.here(command, PACKAGES, targets(found, ended), rows)
    if json_out is not None:
        draw(samples, found, after, json_out.with_suffix(".png"))
    raise typer.Exit(report.publish(Console(), json_out))


def targets(found: list[Trend], ended: Mapping[str, int]) -> list[Target]:
    """Nothing is lost, and nothing grows."""
    growing = [trend.series for trend in found if trend.grows]
    return [
        Target.at_most("requests lost", ended.get(LOST, 0), 0, ""),
        Target.at_most("requests failed", ended.get(FAILED, 0), 0, ""),
        Target.at_most("series that grow" + (f": {', '.join(growing)}" if growing else ""), len(growing), 0, ""),
    ]


def row(trend: Trend) -> Row:
    """Slopes are for 1,000 requests."""
    return {
        "series": trend.series,
        "level": round(trend.level, 3),
        "slope": round(trend.slope, 4),
        "low": round(trend.low, 4),
        "high": round(trend.high, 4),
        "noise": trend.noise,
        "grows": trend.grows,
    }


def _soak(requests: int, schemas: int, minutes: float) -> tuple[list[Sample], dict[str, int]]:
    with _service() as (url, looker), Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("requests", total=requests)
        driving = Driving(httpx.URL(url).host, httpx.URL(url).port or 80, lambda: bar.advance(task))
        period_s = max(LEAST_S, 60 * minutes / SAMPLES)
        with Sampling(looker.look, driving.ended.total, period_s) as samples:
            asyncio.run(driving.drive(traffic(requests, schemas), requests / (60 * minutes)))
        for example in driving.examples:
            bar.console.print(example, markup=False, highlight=False, soft_wrap=True)
    return list(samples), dict(driving.ended)


@contextmanager
def _service() -> Iterator[tuple[str, Looker]]:
    with RedisServer() as server, environment(ONE_THREAD, {}):
        password = server.password.get_secret_value()
        shared = {"redis": {"url": server.url, "password": password}, "artifact_secret": secrets.token_hex(32)}
        with Redis(HOST, server.port, password=password) as redis, running_service({**SETTINGS, **shared}) as url:
            # Ray reads the environment when it is imported.
            from load_tests.soak.ray_objects import count_objects

            yield url, Looker(redis, count_objects)


if __name__ == "__main__":
    typer.run(main)
