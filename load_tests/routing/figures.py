"""From answers and metrics to rows, and from rows to targets; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from deployments.reporting.quantiles import median, quantile, ratio
from deployments.reporting.report import Row, Target
from load_tests.routing.clients import Asked
from load_tests.routing.page import Page, ReplicaFigures

SCHEMA, POWER_OF_TWO = POLICIES = ("schema", "power_of_two")
POPULAR, HOT = "popular", "hot"
OK = 200


def row(turn: int, policy: str, phase: str, asked: Sequence[Asked], seconds: float, before: Page, after: Page) -> Row:
    """One phase of one policy's turn. `load` is the requests that a replica had at a time, on average; `brought` grammars that an engine
    lacked, so that it had to have them fetched, or compiled from their recipe."""
    # One that has never answered anything, not even while they were warmed up, has gone before it served: the page remembers it.
    added = [figures.since(before.get(replica, ReplicaFigures())) for replica, figures in after.items() if figures.answered]
    loads = [one.request_s / seconds for one in added]
    answered = [one.seconds for one in asked if one.status == OK]
    return {
        "turn": turn,
        "policy": policy,
        "phase": phase,
        "requests": len(asked),
        "failures": len(asked) - len(answered),
        "retries": sum(one.retries for one in asked),
        "statuses": dict(Counter(f"{one.status} {one.code}".strip() for one in asked)),
        "requests_per_s": round(len(asked) / seconds, 2),
        "latency_p50_ms": _ms(answered, 0.5),
        "latency_p99_ms": _ms(answered, 0.99),
        "grammars_resident": round(fmean(one.grammars_resident for one in added), 2),
        "mask_rows_per_step": _per(added, lambda one: one.mask_rows),
        "distinct_rows_per_step": _per(added, lambda one: one.distinct_mask_rows),
        "brought": round(sum(one.grammars_loaded for one in added)),
        "load_by_replica": [round(load, 2) for load in loads],
        "max_load_over_mean": round(max(loads) / fmean(loads), 3),
        "answered_by_replica": [round(one.answered) for one in added],
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """Of medians over turns: what a turn's two policies have in common, the machine's mood, is in neither."""
    return [*_popular(_Pairs(rows, POPULAR)), *_hot(_Pairs(rows, HOT)), _failures(rows)]


class _Pairs:
    """A phase's rows, by policy."""

    def __init__(self, rows: Sequence[Row], phase: str) -> None:
        self._rows = [row for row in rows if row["phase"] == phase]

    def median(self, policy: str, figure: str) -> float | None:
        return median(row[figure] for row in self._rows if row["policy"] == policy)

    def fewer(self, figure: str) -> float | None:
        """How many times as much power of two choices has."""
        return ratio(self.median(POWER_OF_TWO, figure), self.median(SCHEMA, figure))

    def of_theirs(self, figure: str) -> float | None:
        return ratio(self.median(SCHEMA, figure), self.median(POWER_OF_TWO, figure))


def _popular(found: _Pairs) -> Iterator[Target]:
    yield Target.at_least("grammars resident on a replica, power of two / ours", found.fewer("grammars_resident"), 2.5, "×")
    yield Target.at_least("different mask rows in a step, power of two / ours", found.fewer("distinct_rows_per_step"), 1.5, "×")
    yield Target.at_least("grammars fetched or compiled by an engine, power of two / ours", found.fewer("brought"), 2, "×")
    yield Target.at_most("p99 latency, ours / power of two", found.of_theirs("latency_p99_ms"), 1.1, "×")
    yield Target.at_most("most loaded replica / mean", found.median(SCHEMA, "max_load_over_mean"), 1.3, "×")


def _hot(found: _Pairs) -> Iterator[Target]:
    yield Target.at_most("one hot schema: p99 latency, ours / power of two", found.of_theirs("latency_p99_ms"), 1.1, "×")
    yield Target.at_most("one hot schema: most loaded replica / mean, ours / power of two", found.of_theirs("max_load_over_mean"), 1.1, "×")


def _failures(rows: Sequence[Row]) -> Target:
    return Target.at_most("requests that were not answered", float(sum(row["failures"] for row in rows)), 0, "")


def _per(added: Sequence[ReplicaFigures], of: Callable[[ReplicaFigures], float]) -> float:
    """In a step that had masks."""
    steps = sum(one.masked_steps for one in added)
    return round(sum(map(of, added)) / steps, 3) if steps else 0.0


def _ms(seconds: Sequence[float], share: float) -> float:
    return round((quantile(seconds, share) or 0.0) * 1000, 1)
