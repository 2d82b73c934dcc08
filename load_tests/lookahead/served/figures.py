"""What engines say and take: rows, tables, and what is promised of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployments.reporting.report import Target
from load_tests.lookahead.arms import APPX, CDLH, CDSL
from load_tests.lookahead.figures import GREEDY, compared_cells
from load_tests.lookahead.near_ties import Compared
from load_tests.lookahead.served.engines import PLAIN
from load_tests.lookahead.served.turns import FORWARDS, PREEMPTIONS, SUMS, Served

ALONE, MANY, MOST_AT_ONCE = 1, 24, 32
TEXT_HEADINGS = ("engine", "answers at once", "texts", "as plain loops", "near-ties", "others", "preemptions")
Row = Mapping[str, Any]


def row(served: Served, compared: Compared) -> dict[str, Any]:
    """`ms`: of a token; calls and forwards too are for a token; preemptions are all of them."""
    tokens = sum(map(len, served.said))
    counted = {name: served.counted[name] / tokens for name in (FORWARDS, *SUMS) if name in served.counted}
    way = {"engine": served.engine, "method": served.arm, "at_once": served.at_once}
    return {**way, "ms": served.milliseconds, **counted, PREEMPTIONS: served.counted[PREEMPTIONS], **compared_cells(compared)}


def served_rows(rows: Sequence[Row]) -> list[Row]:
    """Of all that a report has."""
    return [one for one in rows if "engine" in one]


def targets(rows: Sequence[Row]) -> list[Target]:
    of = {one["method"]: one for one in rows if (one["engine"], one["at_once"]) == (PLAIN, ALONE)}
    cdlh, appx, cdsl = (of[arm.name] for arm in (CDLH, APPX, CDSL))
    preempted = sum(one[PREEMPTIONS] for one in rows)
    wrong = sum(_others(one) for one in rows)
    near = 100 * sum(one["near_ties"] for one in rows) / sum(one["compared"] for one in rows)
    return [
        Target.at_least("on engines, one answer at a time: a token's time, CDLH / CDSL", cdlh["ms"] / cdsl["ms"], 1.5, "×"),
        Target.at_least("on engines, one answer at a time: a token's time, CDLH-appx / CDSL", appx["ms"] / cdsl["ms"], 1.2, "×"),
        Target.at_most("forwards that the core counts for a verification of CDSL", cdsl[FORWARDS] / cdsl["target_steps"], 1, ""),
        Target.at_least("preemptions, in an engine of few blocks", preempted, 1, ""),
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
    of = {(one["method"], one["at_once"]): one["ms"] for one in rows if one["engine"] == PLAIN}
    methods = dict.fromkeys(method for method, _ in of)
    return [[method, *(cell for at_once in (ALONE, MANY, MOST_AT_ONCE) for cell in _times(of, method, at_once))] for method in methods]


def text_lines(rows: Sequence[Row]) -> list[list[str]]:
    """A line an engine and number of answers at once, over all methods."""
    ways = dict.fromkeys((one["engine"], one["at_once"]) for one in rows)
    found = []
    for engine, at_once in ways:
        alike = [one for one in rows if (one["engine"], one["at_once"]) == (engine, at_once)]
        sums = [sum(one[name] for one in alike) for name in ("compared", "equal", "near_ties")]
        others, preempted = sum(map(_others, alike)), sum(one[PREEMPTIONS] for one in alike)
        found.append([engine, str(at_once), *map(str, (*sums, others, preempted))])
    return found


def _times(of: Mapping[tuple[str, int], float], method: str, at_once: int) -> list[str]:
    ms = of[method, at_once]
    return [f"{ms:.2f}", f"{ms / of[GREEDY, at_once]:.2f} × the time", f"{of[CDLH.name, at_once] / ms:.2f} × as fast"]


def _others(row: Row) -> int:
    return int(row["compared"] - row["equal"] - row["near_ties"])
