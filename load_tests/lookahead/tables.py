"""Rows of results as lines of tables, in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

HEADINGS = ("method", "all said, %", "said, %", "draft calls", "target calls", "P", "nats", "S1 · S2 · S3 · S4", "as plain loops")
Row = Mapping[str, Any]


def cells(row: Row) -> list[str]:
    """A way to decode."""
    shares = [f"{row[name]:.1f}" for name in ("hard", "soft")]
    figures = [f"{row[name]:.2f}" for name in ("draft_calls", "target_calls", "p", "nats")]
    states = " · ".join(str(row[state]) for state in ("s1", "s2", "s3", "s4") if state in row)
    return [row["method"], *shares, *figures, states, f"{row['equal']} of {row['compared']}" if "equal" in row else ""]


def shown(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table
