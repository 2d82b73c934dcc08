"""`maskcast grammar bench`: the benchmark with a Redis of its own, and with Ray where it is asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deployments.grammar_progress import CaseProgress
from deployments.redis_server import RedisServer
from grammar_service.bench.cases import Case, read_cases
from grammar_service.bench.messages import RedisAddress
from grammar_service.bench.report import BenchReport
from grammar_service.bench.runner import GrammarBench, Plan, report
from grammar_service.bench.targets import Figures

REDIS_MIB = 4096


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """What to measure: the grammars of a folder, and for cold first masks those of another one too."""

    folder: Path
    tokenizer_path: str
    rounds: int
    also: Path | None
    ray: bool


def run_bench(command: str, order: BenchOrder, progress: CaseProgress) -> tuple[BenchReport, Figures]:
    """Raises UnusableFile, BenchFailed, StartError."""
    cases = read_cases(order.folder)
    also = [replace(case, name=f"{order.also.name}/{case.name}") for case in read_cases(order.also)] if order.also else []
    with _redis(progress) as redis:
        plan = Plan(order.tokenizer_path, cases, also, redis, order.rounds)
        figures = GrammarBench(plan, progress.show).run()
    found = report(command, figures)
    return (_with_ray(found, cases, order, progress) if order.ray else found), figures


@contextmanager
def _redis(progress: CaseProgress) -> Iterator[RedisAddress | None]:
    if shutil.which("redis-server") is None:
        progress.say("redis-server was not found: nothing is shared, and how soon shared grammars are ready is not measured")
        yield None
        return
    with RedisServer(max_memory_mib=REDIS_MIB) as server:
        yield RedisAddress(server.url, server.password.get_secret_value(), "bench")


def _with_ray(found: BenchReport, cases: list[Case], order: BenchOrder, progress: CaseProgress) -> BenchReport:
    from deployments.ray_overhead import ray_overhead

    target, row = ray_overhead(cases, order.tokenizer_path, progress)
    return replace(found, targets=[*found.targets, target], rows=[*found.rows, row])
