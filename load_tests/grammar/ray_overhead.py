"""What asking the compile pool through Ray Serve adds: a Ray and a compile replica of its own, started and stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from ray import serve

from deployments.app import compile_pool
from deployments.commands.progress import CaseProgress
from deployments.config import parse_settings
from deployments.errors import StartError
from deployments.grammars.pool import CompilePool
from deployments.local.environment import defaults, environment
from deployments.local.own_ray import own_serve
from deployments.reporting.quantiles import median, quantile
from deployments.reporting.report import Row, Target
from deployments.reporting.stopwatch import ms_since
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.messages import Compiled
from grammar_service.resolve import Resolution, resolve
from load_tests.corpus.cases import Case

APPLICATION = "grammar-bench"
GRAMMARS = 10
CALLS = 50
"""For each grammar."""


def ray_overhead(cases: Sequence[Case], tokenizer_path: str, progress: CaseProgress) -> tuple[Target, Row]:
    """The median of hits in a replica's memory, request to artifact, and the row behind it. Raises StartError."""
    settings = parse_settings({"model": {"path": tokenizer_path}, "grammar": {"compile_replicas": 1}})
    try:
        with environment(defaults(settings, Path.home()), {}), own_serve():
            progress.say("starting the compile pool on Ray Serve")
            handle = serve.run(compile_pool(settings), name=APPLICATION, route_prefix=None)
            taken = asyncio.run(_hits(CompilePool(handle), cases, progress))
    except (OSError, RuntimeError) as error:
        raise StartError(f"the compile pool does not run on Ray: {error}") from error
    values = {"hit_ms": median(taken), "hit_p99_ms": quantile(taken, 0.99), "calls": len(taken)}
    target = Target.at_most("hit in memory, through Ray, median", values["hit_ms"], 5, "ms")
    return target, {"part": "ray", **values}


async def _hits(pool: CompilePool, cases: Sequence[Case], progress: CaseProgress) -> list[float]:
    """Grammars that are compiled at once take turns; the first call of each, which compiles, does not count."""
    grammars = [found for case in cases if (found := _resolved(case, await pool.fingerprint())) is not None]
    held = [grammar for grammar in grammars[:GRAMMARS] if isinstance(await pool.compile(grammar.request(pinned=True)), Compiled)]
    taken: list[float] = []
    for call in range(CALLS):
        progress.show("ray, calls", call, CALLS)
        for grammar in held:
            started = time.perf_counter()
            await pool.compile(grammar.request(pinned=True))
            taken.append(ms_since(started))
    return taken


def _resolved(case: Case, fingerprint: str) -> Resolution | None:
    try:
        return resolve(case.spec, Limits(), fingerprint)
    except GrammarError:
        return None
