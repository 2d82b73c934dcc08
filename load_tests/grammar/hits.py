"""`python -m load_tests.grammar.hits`: what a grammar costs that a replica holds in memory, by the size of its artifact.

Two ways take turns with a third one: a compile replica's answer; a model replica's lookup, with the payload taken out of what it finds;
and authenticating and copying the same bytes once more, which is what a hit would cost if memory could not be trusted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.quantiles import median, quantile, ratio
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.artifacts.artifact import decode
from grammar_service.artifacts.cache import MemoryCache, TieredCache
from grammar_service.artifacts.seal import Seal
from grammar_service.backends import CompiledPayload
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.compiler.source import GrammarSource
from grammar_service.heap import settle_heap
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, ReadyGrammar
from grammar_service.sandbox import SandboxSettings
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.errors import BenchFailed

PACKAGES = ("maskcast", "msgspec")
SECRET = b"load test"
SIZES = {"64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20}
SMALL, LARGE = "64 KiB", "16 MiB"
BOUND = 2.0
MEMORY_BYTES = 64 << 20
AGAIN_BYTES = 256 << 20
"""What is authenticated again in one turn, so that large artifacts do not take minutes."""
LEAST_HITS = 20
ANSWER, LOOKUP, AGAIN = "compile replica: answer", "model replica: lookup and payload", "authenticate and copy again"

Work = Callable[[], Awaitable[object]]


def main(
    hits: Annotated[int, typer.Option(min=100, help="hits of each size in each turn")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="turns of all ways and sizes")] = 5,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure hits in memory for artifacts of 64 KiB, 1 MiB and 16 MiB."""
    rows = asyncio.run(_measure(hits, rounds))
    report = BenchReport.here(f"python -m load_tests.grammar.hits --hits {hits} --rounds {rounds}", PACKAGES, _targets(rows), rows)
    console = Console()
    for row in rows:
        times = f"median {row['p50_us']:,.1f} µs, p99 {row['p99_us']:,.1f} µs, processor {row['processor_us']:,.1f} µs"
        console.print(f"{row['way']}, {row['size']}, round {row['round']}: {times}", highlight=False, soft_wrap=True)
    raise typer.Exit(report.publish(console, json_out))


async def _measure(hits: int, rounds: int) -> list[Row]:
    cache = TieredCache(MemoryCache(MEMORY_BYTES), None)
    compiler = GrammarCompiler(EMBEDDED_WEIGHTS, 20.0, SandboxSettings(workers=1), cache, SECRET)
    try:
        await compiler.start()
        replicas = Replicas(compiler, cache)
        ways = {size: await replicas.ways(size) for size in SIZES}
        settle_heap()
        return [
            await _row(way, size, number + 1, work, hits)
            for number in range(rounds)
            for size, works in ways.items()
            for way, work in works.items()
        ]
    finally:
        await compiler.close()


class Replicas:
    """A compile replica and a model replica in one process, with one memory."""

    def __init__(self, compiler: GrammarCompiler, cache: TieredCache) -> None:
        self._compiler = compiler
        self._cache = cache
        self._source = GrammarSource(cache, compiler.compile, SECRET, compiler.fingerprint, Limits())

    async def ways(self, size: str) -> dict[str, Work]:
        """What is measured, on an artifact whose payload has that size. Raises BenchFailed: it is not found in memory."""
        request = CompileRequest(GrammarSpec(GrammarKind.REGEX, size), f"key of {size}", "xgrammar")
        grammar = ReadyGrammar(request.spec, request.key, request.backend, routing_key=request.key)
        # Tables, which are stored as they are.
        payload = CompiledPayload(os.urandom(SIZES[size]), expanded_bytes=1)
        artifact = Seal(SECRET, self._compiler.fingerprint).artifact(request, payload)
        self._cache.keep(artifact)

        async def answer() -> object:
            return await self._compiler.compile(request)

        async def lookup() -> object:
            return (await self._source.get(grammar)).payload()

        async def again() -> object:
            return decode(artifact.blob, SECRET, key=request.key, fingerprint=self._compiler.fingerprint).payload

        answered = await answer()
        if not isinstance(answered, Compiled) or answered.source != "memory" or await lookup() != payload.data:
            raise BenchFailed(f"the artifact of {size} is not found in memory")
        return {ANSWER: answer, LOOKUP: lookup, AGAIN: again}


async def _row(way: str, size: str, number: int, work: Work, hits: int) -> Row:
    if way == AGAIN:
        hits = max(LEAST_HITS, min(hits, AGAIN_BYTES // SIZES[size]))
    taken = []
    before = time.process_time()
    for _ in range(hits):
        started = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - started) * 1e6)
    processor_us = (time.process_time() - before) * 1e6 / hits
    p50, p99 = (round(quantile(taken, share) or 0.0, 2) for share in (0.5, 0.99))
    times = {"p50_us": p50, "p99_us": p99, "processor_us": round(processor_us, 2)}
    return {"way": way, "size": size, "round": number, "hits": hits, **times}


def _targets(rows: Sequence[Row]) -> list[Target]:
    """Medians over the rounds."""
    found = []
    for way in (ANSWER, LOOKUP):
        for figure, title in (("p50_us", "median"), ("processor_us", "processor time")):
            more = ratio(_of(rows, way, LARGE, figure), _of(rows, way, SMALL, figure))
            found.append(Target.at_most(f"{way}: {LARGE} over {SMALL}, {title}", more, BOUND, ""))
    return found


def _of(rows: Sequence[Row], way: str, size: str, figure: str) -> float | None:
    return median(row[figure] for row in rows if (row["way"], row["size"]) == (way, size))


if __name__ == "__main__":
    typer.run(main)
