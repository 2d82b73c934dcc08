"""Rows of results as lines of tables, in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from load_tests.lookahead.call_model import READINGS

PAIR_HEADINGS = ("task", "draft", "CDLH-appx, ×", "CDSL, ×", "draft, target", *(reading.name for reading in READINGS))
Row = Mapping[str, Any]


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
