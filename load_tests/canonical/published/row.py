"""The form of a published figure beside ours."""

from __future__ import annotations

from typing import Any

from load_tests.canonical.published.tables import PART


def figure(name: str, on: str, published: float | None, measured: float | None, unit: str = "") -> dict[str, Any]:
    """`on`: the tokenizer of the measured one, or what else it is of; None where there is none."""
    short = None if measured is None else float(f"{measured:.5g}")
    return {"part": PART, "figure": name, "on": on, "published": published, "measured": short, "unit": unit}
