"""How many schemas fewer are served without a mechanism; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployments.reporting.report import Row, Target
from load_tests.schema_mechanisms.mechanisms import ALL

LEAST_SERVED = 0.92


def targets(rows: Sequence[Row], first: str) -> list[Target]:
    served = next(row["served"] / row["schemas"] for row in rows if row["left_out"] == ALL and row["set"] == first)
    return [Target.at_least(f"{first}: schemas that are served by masks", served, LEAST_SERVED, "")]


def headings(rows: Sequence[Row]) -> list[str]:
    """The largest set first."""
    return ["left out", *(f"{name}, {row['schemas']}" for name, row in _whole(rows).items())]


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """What is served with all, and how many fewer without each, those first that serve the most of the first set."""
    whole = _whole(rows)
    served = {(row["left_out"], row["set"]): row["served"] for row in rows}
    names = dict.fromkeys(row["left_out"] for row in rows if row["left_out"] != ALL)
    lost = {name: [row["served"] - served[name, of] for of, row in whole.items()] for name in names}
    ordered = sorted(lost, key=lambda name: lost[name], reverse=True)
    all_of_them = ["nothing", *(str(row["served"]) for row in whole.values())]
    return [all_of_them, *([name, *(f"−{fewer}" if fewer else "0" for fewer in lost[name])] for name in ordered)]


def _whole(rows: Sequence[Row]) -> Mapping[str, Row]:
    """What is served with all mechanisms, by set."""
    found = [row for row in rows if row["left_out"] == ALL]
    return {row["set"]: row for row in sorted(found, key=lambda row: row["schemas"], reverse=True)}
