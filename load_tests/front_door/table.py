"""What the page of the result shows of each cell: medians over turns, stock and ours side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deployments.reporting.quantiles import median
from deployments.reporting.report import Row
from load_tests.front_door.figures import OURS, STOCK, Found


def headings(ratio: str = "ours / stock") -> tuple[str, ...]:
    return (
        "workload",
        "answers",
        "clients",
        "requests a second",
        ratio,
        "p99 to first text, ms",
        "median latency, ms",
        "p99 latency, ms",
        "in front of the engine, ms a request",
    )


def lines(rows: Sequence[Row], by: str = STOCK, ours: str = OURS) -> list[list[str]]:
    """A line for each cell, in the order of the rows; `by : ours`."""
    cells = dict.fromkeys((row["workload"], row["answers"], row["clients"]) for row in rows)
    return [_line(Found(rows, by, ours), *cell) for cell in cells]


def _line(found: Found, workload: str, way: str, clients: int) -> list[str]:
    def both(figure: str, form: Callable[[float], str]) -> str:
        sides = [
            median(row[figure] for row in found.side(side, workload, clients, way) if row.get(figure) is not None)
            for side in (found.by, found.ours)
        ]
        return " : ".join("–" if value is None else form(value) for value in sides)

    more = found.ratio("requests_per_s", workload, clients, way)
    return [
        workload,
        way,
        str(clients),
        both("requests_per_s", "{:.1f}".format),
        "–" if more is None else f"{more:.2f} ×",
        both("first_text_p99_ms", "{:,.0f}".format),
        both("latency_p50_ms", "{:,.0f}".format),
        both("latency_p99_ms", "{:,.0f}".format),
        both("front_ms", "{:.1f}".format),
    ]
