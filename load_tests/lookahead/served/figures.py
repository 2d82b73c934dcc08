"""What engines say and take: rows, tables, and what is promised of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deployments.reporting.report import Target
from load_tests.lookahead.arms import APPX, CDLH, CDSL
from load_tests.lookahead.figures import GREEDY, compared_cells
from load_tests.lookahead.near_ties import Compared
from load_tests.lookahead.served.engines import FEW_BLOCKS, PLAIN, UNCACHED
from load_tests.lookahead.served.turns import BEHIND_EXAMPLES, BY_THEMSELVES, CACHED, FORWARDS, PREEMPTIONS, SUMS, Served

ALONE, MANY, MOST_AT_ONCE = 1, 24, 32
TEXT_HEADINGS = ("engine", "prompts", "answers at once", "texts", "as plain loops", "near-ties", "others", "preemptions", "cached")
Row = Mapping[str, Any]


def row(served: Served, compared: Compared) -> dict[str, Any]:
    """`ms`: of a token; calls and forwards too are for a token; preemptions, and cached tokens of prompts, are all of them."""
    tokens = sum(map(len, served.said))
    counted = {name: served.counted[name] / tokens for name in (FORWARDS, *SUMS) if name in served.counted}
    sums = {name: served.counted[name] for name in (PREEMPTIONS, CACHED)}
    return {**asdict(served.way), "method": served.arm, "ms": served.milliseconds, **counted, **sums, **compared_cells(compared)}


def served_rows(rows: Sequence[Row]) -> list[Row]:
    """Of all that a report has."""
    return [one for one in rows if "engine" in one]


def targets(rows: Sequence[Row]) -> list[Target]:
    of = {one["method"]: one for one in _measured(rows) if one["at_once"] == ALONE}
    cdlh, appx, cdsl = (of[arm.name] for arm in (CDLH, APPX, CDSL))
    wrong = sum(_others(one) for one in rows)
    near = 100 * sum(one["near_ties"] for one in rows) / sum(one["compared"] for one in rows)
    return [
        Target.at_least("on engines, one answer at a time: a token's time, CDLH / CDSL", cdlh["ms"] / cdsl["ms"], 1.5, "×"),
        Target.at_least("on engines, one answer at a time: a token's time, CDLH-appx / CDSL", appx["ms"] / cdsl["ms"], 1.2, "×"),
        Target.at_most("forwards that the core counts for a verification of CDSL", cdsl[FORWARDS] / cdsl["target_steps"], 1, ""),
        Target.at_least("preemptions, in the engine of few blocks", _sum(rows, PREEMPTIONS, FEW_BLOCKS), 1, ""),
        Target.at_least("tokens of prompts behind examples that the prefix cache had", _sum(rows, CACHED, PLAIN, BEHIND_EXAMPLES), 1, ""),
        Target.at_most("tokens that an engine without prefix cache had", _sum(rows, CACHED, UNCACHED), 0, ""),
        Target.at_most("texts of engines that are not those of plain loops", wrong, 0, ""),
        Target.at_most("near-ties excused, of the engines' texts", near, 2, "%"),
    ]


def time_headings() -> list[str]:
    return [
        "",
        *(f"{at_once} at once, {what}" for at_once in (ALONE, MANY, MOST_AT_ONCE) for what in ("ms a token", "greedy's", "of CDLH's")),
    ]


def time_lines(rows: Sequence[Row]) -> list[list[str]]:
    """A line a method: its time, how many times greedy's that is, and by how much it is faster than CDLH."""
    of = {(one["method"], one["at_once"]): one["ms"] for one in _measured(rows)}
    methods = dict.fromkeys(method for method, _ in of)
    return [[method, *(cell for at_once in (ALONE, MANY, MOST_AT_ONCE) for cell in _times(of, method, at_once))] for method in methods]


def text_lines(rows: Sequence[Row]) -> list[list[str]]:
    """A line an engine, kind of prompts and number of answers at once, over all methods."""
    ways = dict.fromkeys(map(_way, rows))
    found = []
    for way in ways:
        alike = [one for one in rows if _way(one) == way]
        sums = [sum(one[name] for one in alike) for name in ("compared", "equal", "near_ties")]
        found.append([*map(str, (*way, *sums, sum(map(_others, alike)))), *(f"{_sum(alike, name):,}" for name in (PREEMPTIONS, CACHED))])
    return found


def _times(of: Mapping[tuple[str, int], float], method: str, at_once: int) -> list[str]:
    ms = of[method, at_once]
    return [f"{ms:.2f}", f"{ms / of[GREEDY, at_once]:.2f} × the time", f"{of[CDLH.name, at_once] / ms:.2f} × as fast"]


def _way(row: Row) -> tuple[str, str, int]:
    return row["engine"], row["prompts"], row["at_once"]


def _measured(rows: Sequence[Row]) -> list[Row]:
    return [one for one in rows if (one["engine"], one["prompts"]) == (PLAIN, BY_THEMSELVES)]


def _sum(rows: Sequence[Row], name: str, *way: str) -> int:
    """Of those that are of this engine and kind of prompts, as far as they are given."""
    return sum(one[name] for one in rows if _way(one)[: len(way)] == way)


def _others(row: Row) -> int:
    return int(row["compared"] - row["equal"] - row["near_ties"])
