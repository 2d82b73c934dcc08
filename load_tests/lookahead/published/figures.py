"""The paper's own figures (tables 3 and 5 to 8), and what they say of cost and of readings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from deployments.reporting.report import Target
from load_tests.lookahead.published.call_model import READINGS, Setting, fitted
from model_service.lookahead.cost import runtime

FOLDER = Path(__file__).parent
MOST_CDSL = 0.5
MOST_APPX = 2
"""Percent that the cost model may be off."""


def published_rows() -> list[dict[str, Any]]:
    """A row a pair of models: speed-ups computed and published, and each reading's calls at its best fit."""
    settings = {(row["task"], row["draft"]): row for row in _read("settings.csv")}
    return [_row(figures, settings[figures["task"], figures["draft"]]) for figures in published_figures()]


def published_figures() -> list[dict[str, str]]:
    """As they are printed: calls, speed-ups, and percent of texts that are satisfied; a row a pair of models."""
    return _read("calls.csv")


def targets(rows: Sequence[dict[str, Any]]) -> list[Target]:
    worst = {method: max(abs(row[f"{method}_off"]) for row in rows) for method in ("cdsl", "appx")}
    text, algorithm = (median(row[f"{reading.name}: off"] for row in rows) for reading in READINGS)
    return [
        Target.at_most("CDSL's speed-up by the cost model, off the published at most", worst["cdsl"], MOST_CDSL, "%"),
        Target.at_most("CDLH-appx's speed-up by the cost model, off the published at most", worst["appx"], MOST_APPX, "%"),
        Target.at_most(f'calls as in "{READINGS[0].name}", median distance from the published', text, 0.05, ""),
        Target.at_least(f'calls as in "{READINGS[1].name}", median distance from the published', algorithm, 0.2, ""),
    ]


def _row(figures: dict[str, str], setting: dict[str, str]) -> dict[str, Any]:
    ratio, cdlh = float(figures["cost_ratio_c"]), float(figures["cdlh_target_calls"])
    row: dict[str, Any] = {name: figures[name] for name in ("task", "target", "draft")}
    for method in ("appx", "cdsl"):
        of_method = runtime(ratio, float(figures[f"{method}_draft_calls"]), float(figures[f"{method}_target_calls"]))
        row[f"{method}_speedup"] = runtime(ratio, 0, cdlh) / of_method
        row[f"{method}_published"] = float(figures[f"{method}_speedup"])
        row[f"{method}_off"] = 100 * (row[f"{method}_speedup"] / row[f"{method}_published"] - 1)
    draft, target = float(figures["cdsl_draft_calls"]), float(figures["cdsl_target_calls"])
    row |= {"draft_calls": draft, "target_calls": target}
    pair = Setting(
        int(setting["d"]), float(setting["a_t"]), int(setting["b"]), float(setting["accepted"]), float(figures["appx_draft_calls"])
    )
    for reading in READINGS:
        rewarded, calls = fitted(pair, reading, draft, target)
        values = {"rewarded": rewarded, "draft": calls.draft, "target": calls.target, "off": calls.distance(draft, target)}
        row |= {f"{reading.name}: {name}": value for name, value in values.items()}
    return row


def _read(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
