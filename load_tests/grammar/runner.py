"""The whole benchmark: part by part, each in children that can be killed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from deployments.reporting.report import BenchReport, Row
from load_tests.corpus.cases import Case
from load_tests.grammar.bounded import Bounds, run_bounded
from load_tests.grammar.messages import Assignment, Began, Line, Measured, RedisAddress
from load_tests.grammar.targets import Figures, targets

PACKAGES = ("xgrammar", "llguidance", "zstandard", "redis", "mistral_common", "torch", "ray")
SEED = 11

Heard = Callable[[str, int, int], None]
"""What runs now, how many cases of it are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`also` are further cases whose first masks are measured. Without `redis` nothing is shared, and the part `ready` is left out.
    `deadline_s` bounds a compile in the service."""

    tokenizer_path: str
    cases: Sequence[Case]
    also: Sequence[Case] = ()
    redis: RedisAddress | None = None
    rounds: int = 3
    deadline_s: float = 5.0
    bounds: Bounds = field(default_factory=Bounds)


class GrammarBench:
    """Runs a plan; each part tells the next one which cases are worth its time."""

    def __init__(self, plan: Plan, heard: Heard) -> None:
        self._plan = plan
        self._heard = heard
        self._chance = random.Random(SEED)

    def run(self) -> Figures:
        """Raises BenchFailed."""
        pool = self._pool()
        settled = {row.case for row in pool if "settled_ms" in row.values}
        cases = [case for case in self._plan.cases if case.name in settled]
        tabled = {row.case for row in pool if row.values.get("backend") == "xgrammar"}
        codec = self._part("codec", [case for case in cases if case.name in tabled])
        return Figures(pool, codec, self._ready(cases) if self._plan.redis else [])

    def _pool(self) -> list[Measured]:
        """A new replica each turn, since a grammar is cold only once; all but the last in a corner of Redis of their own."""
        everything = [*self._plan.cases, *self._plan.also]
        rows: list[Measured] = []
        for turn in range(self._plan.rounds):
            redis = self._plan.redis
            if redis and turn < self._plan.rounds - 1:
                redis = replace(redis, namespace=f"{redis.namespace}-{turn}")
            rows += self._part("pool", everything if turn == 0 else self._plan.cases, turn=turn, redis=redis)
        return rows

    def _ready(self, cases: Sequence[Case]) -> list[Measured]:
        """Each turn splits the cases into halves by chance; each half is measured by a child that has seen the other one."""
        rows: list[Measured] = []
        for turn in range(self._plan.rounds):
            shuffled = self._chance.sample(cases, len(cases))
            middle = len(shuffled) // 2
            halves = shuffled[:middle], shuffled[middle:]
            for half, (measured, warm) in enumerate((halves, halves[::-1])):
                rows += self._part("ready", measured, f", half {half + 1}", warm, turn)
        return rows

    def _part(
        self,
        part: str,
        cases: Sequence[Case],
        label: str = "",
        warm: Sequence[Case] = (),
        turn: int = 0,
        redis: RedisAddress | None = None,
    ) -> list[Measured]:
        plan = self._plan
        assignment = Assignment(
            part,
            plan.tokenizer_path,
            list(cases),
            list(warm),
            redis or plan.redis,
            rounds=plan.rounds,
            turn=turn,
            deadline_s=plan.deadline_s,
        )
        name, total = f"{part}, turn {turn + 1}{label}", len(cases) + len(warm)
        rows = run_bounded(assignment, plan.bounds, _Step(name, total, self._heard).hear)
        self._heard(name, total, total)
        return rows


class _Step:
    """Counts what a child says."""

    def __init__(self, name: str, total: int, heard: Heard) -> None:
        self._name, self._total, self._heard = name, total, heard
        self._begun = 0

    def hear(self, line: Line) -> None:
        self._begun += isinstance(line, Began)
        self._heard(self._name, min(max(self._begun - 1, 0), self._total), self._total)


def report(command: str, figures: Figures) -> BenchReport:
    """The figures with the targets that they hold or miss."""
    parts = {"pool": figures.pool, "codec": figures.codec, "ready": figures.ready}
    rows: list[Row] = [{"part": part, "case": row.case, **row.values} for part, measured in parts.items() for row in measured]
    return BenchReport.here(command, PACKAGES, targets(figures), rows)
