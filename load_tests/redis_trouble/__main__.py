"""`python -m load_tests.redis_trouble`: how much longer requests wait for their grammars when Redis is in trouble.

Two services stand side by side, one with a Redis in order, the other with one that is stopped, suspended, slow, full, restarted or
overwritten. They are asked in turn for the same grammars. Their circuit breakers are made to let every request through: what is
measured is what the unlucky ones pay, not what most pay once a breaker has opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.config import RedisSettings
from deployments.local.redis_server import RedisServer
from deployments.reporting.quantiles import quantile
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.heap import settle_heap
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.redis_trouble.grammar_way import GrammarWay
from load_tests.redis_trouble.troubles import TROUBLES, BeforeEach

PACKAGES = ("maskcast", "redis", "xgrammar", "llguidance")
BOUND_MS = 50.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A way of asking: by name, or for a grammar that the compile replica has, or that llguidance stands in for while it is cold."""

    title: str
    named: bool = False
    known: bool = False
    stopgap: bool = False

    def spec(self, number: str) -> GrammarSpec:
        """One that nobody has asked for, different for each number."""
        if self.stopgap:
            return GrammarSpec(GrammarKind.JSON_SCHEMA, f'{{"type": "object", "properties": {{"n{number}": {{"type": "integer"}}}}}}')
        return GrammarSpec(GrammarKind.EBNF, f'root ::= "number {number}: " [a-z]{{1,20}}')


KINDS = (
    Kind("known to the compile replica", known=True),
    Kind("cold, with a stopgap", stopgap=True),
    Kind("cold, without a stopgap"),
    Kind("cold, without a stopgap, by name", named=True),
)


def main(
    requests: Annotated[int, typer.Option(min=5, help="requests of each kind in each trouble")] = 40,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure the latency that a Redis in trouble adds to requests that wait for a grammar."""
    rows = asyncio.run(_measure(requests))
    report = BenchReport.here(f"python -m load_tests.redis_trouble --requests {requests}", PACKAGES, list(_targets(rows)), rows)
    raise typer.Exit(report.publish(Console(), json_out))


async def _measure(requests: int) -> list[Row]:
    timeout_ms = RedisSettings().timeout_ms
    rows: list[Row] = []
    async with AsyncExitStack() as stack:
        sound, troubled = (stack.enter_context(RedisServer()) for _ in range(2))
        ways = [GrammarWay(server, timeout_ms) for server in (sound, troubled)]
        for way in ways:
            stack.push_async_callback(way.close)
            await way.start()
        settle_heap()
        for trouble, begin in TROUBLES.items():
            for kind in KINDS:
                specs = [kind.spec(f"{len(rows)} {number}") for number in range(requests)]
                await _prepare(ways, kind, specs)
                async with begin(troubled) as before_each:
                    rows += [await _pair(ways, trouble, kind, spec, before_each) for spec in specs]
    return rows


async def _prepare(ways: Sequence[GrammarWay], kind: Kind, specs: Sequence[GrammarSpec]) -> None:
    for way in ways:
        if kind.named:
            await way.name(specs[0])
        for spec in specs if kind.known else ():
            await way.make_known(spec)


async def _pair(ways: Sequence[GrammarWay], trouble: str, kind: Kind, spec: GrammarSpec, before_each: BeforeEach) -> Row:
    for way in ways:
        way.remember(spec)
    await before_each()
    sound_ms, troubled_ms = [round(await way.ready_ms(spec, kind.named), 3) for way in ways]
    return {"trouble": trouble, "kind": kind.title, "sound_ms": sound_ms, "troubled_ms": troubled_ms}


def _targets(rows: Sequence[Row]) -> Iterator[Target]:
    """The 99th percentile with the trouble over the median without it: noise counts against us."""
    for trouble in TROUBLES:
        for kind in KINDS:
            of_both = [row for row in rows if (row["trouble"], row["kind"]) == (trouble, kind.title)]
            usual = quantile([row["sound_ms"] for row in of_both], 0.5)
            worst = quantile([row["troubled_ms"] for row in of_both], 0.99)
            added = None if usual is None or worst is None else worst - usual
            yield Target.at_most(f"Redis {trouble}, {kind.title}: added, p99", added, BOUND_MS, "ms")


if __name__ == "__main__":
    typer.run(main)
