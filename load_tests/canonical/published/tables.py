"""Published figures beside ours on a page; needs nothing of what measures them."""

from __future__ import annotations

from deployments.reporting.report import Row

PART, INDEX_PART = "published", "index"
HEADINGS = ("", "of", "published", "measured")
INDEX_HEADINGS = ("", "states", "edges", "ours, s", "outlines-core, s", "ratio", "canonical grammar and first mask, s")


def cells(row: Row) -> list[str]:
    """A published figure beside ours."""
    published, measured = (_shown(row[side], row["unit"]) for side in ("published", "measured"))
    return [row["figure"], row["on"], published, measured]


def index_cells(row: Row) -> list[str]:
    """One language, here and by outlines-core."""
    theirs = f"{row['outlines_core']:.3f}"
    if row["ours"] is None:
        return [row["case"], "", "", row["refused"], theirs, "", _seconds(row.get("served"))]
    quotient = f"{row['outlines_core'] / row['ours']:.1f} ×"
    return [row["case"], f"{row['states']:,}", f"{row['edges']:,}", _seconds(row["ours"]), theirs, quotient, _seconds(row.get("served"))]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _shown(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.4g} {unit}".rstrip() if abs(value) < 1000 else f"{value:,.0f} {unit}".rstrip()
