"""How many schemas fewer are served without a mechanism; pure."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.reporting.report import Row, Target
from load_tests.schema_mechanisms.mechanisms import ALL

LEAST_SERVED = 0.92


def targets(rows: Sequence[Row], first: str) -> list[Target]:
    served = next(row["served"] / row["schemas"] for row in rows if row["left_out"] == ALL and row["set"] == first)
    return [Target.at_least(f"{first}: schemas that are served by masks", served, LEAST_SERVED, "")]


def headings(rows: Sequence[Row]) -> list[str]:
    return ["left out", *(f"{row['set']}, {row['schemas']}" for row in rows if row["left_out"] == ALL)]


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """What is served with all, and how many fewer without each, those first that serve the most of the first set."""
    whole = {row["set"]: row["served"] for row in rows if row["left_out"] == ALL}
    lost = {
        name: [whole[of] - row["served"] for of in whole for row in rows if (row["left_out"], row["set"]) == (name, of)]
        for name in _names(rows)
    }
    ordered = sorted(lost, key=lambda name: lost[name], reverse=True)
    return [["nothing", *map(str, whole.values())], *([name, *(f"−{fewer}" for fewer in lost[name])] for name in ordered)]


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["left_out"] for row in rows if row["left_out"] != ALL))
