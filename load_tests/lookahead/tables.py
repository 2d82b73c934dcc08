"""Rows of results as lines of tables, in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from load_tests.lookahead.published.call_model import READINGS

HEADINGS = ("method", "all said, %", "said, %", "draft calls", "target calls", "P", "nats", "S1 · S2 · S3 · S4", "as plain loops")
PAIR_HEADINGS = ("task", "draft", "CDLH-appx, ×", "CDSL, ×", "draft, target", *(reading.name for reading in READINGS))
Row = Mapping[str, Any]


def cells(row: Row) -> list[str]:
    """A way to decode."""
    shares = [f"{row[name]:.1f}" for name in ("hard", "soft")]
    figures = [f"{row[name]:.2f}" for name in ("draft_calls", "target_calls", "p", "nats")]
    states = " · ".join(str(row[state]) for state in ("s1", "s2", "s3", "s4") if state in row)
    return [row["method"], *shares, *figures, states, f"{row['equal']} of {row['compared']}" if "equal" in row else ""]


def pair_cells(row: Row) -> list[str]:
    """A published pair of models: speed-ups computed and published, calls published, and those of each reading's model."""
    speedups = [f"{row[f'{method}_speedup']:.2f} / {row[f'{method}_published']:.2f}" for method in ("appx", "cdsl")]
    modelled = [f"{row[f'{r.name}: draft']:.2f}, {row[f'{r.name}: target']:.2f} ({row[f'{r.name}: off']:.2f})" for r in READINGS]
    return [row["task"], row["draft"], *speedups, f"{row['draft_calls']:.2f}, {row['target_calls']:.2f}", *modelled]


def shown(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table
