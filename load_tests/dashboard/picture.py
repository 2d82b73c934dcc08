"""Draws the dashboard's panels as Grafana would lay them out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deployments.telemetry.dashboard import COLUMNS, ROWS, Panel
from load_tests.dashboard.prometheus import Series

Ask = Callable[[str], list[Series]]
_INK = "#333333"
_PANEL = (4.3, 2.5)
"""Inches."""
_LABEL = re.compile(r"\{\{(\w+)\}\}")


def draw(ask: Ask, start: float, path: Path) -> None:
    """A PNG. `ask` gives the series of a query, `start` is where time begins."""
    lines = [(row.title, row.panels[at : at + COLUMNS]) for row in ROWS for at in range(0, len(row.panels), COLUMNS)]
    figure = Figure(figsize=(_PANEL[0] * COLUMNS, _PANEL[1] * len(lines)), layout="constrained")
    grid = figure.subplots(len(lines), COLUMNS, squeeze=False)
    for (title, panels), axes in zip(lines, grid, strict=True):
        axes[0].text(0, 1.22, title, transform=axes[0].transAxes, fontsize=12, fontweight="bold", color=_INK)
        for place, panel in zip(axes, panels, strict=False):
            _panel(place, panel, ask, start)
        for place in axes[len(panels) :]:
            place.axis("off")
    figure.supxlabel("seconds", fontsize=8, color=_INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _panel(axes: Axes, panel: Panel, ask: Ask, start: float) -> None:
    for query in panel.queries:
        for series in ask(query.expression):
            legend = _LABEL.sub(lambda found, labels=series.labels: labels.get(found[1], ""), query.legend) or "(none)"  # type: ignore[misc]
            _line(axes, series.points, start, legend)
    axes.set_title(f"{panel.title}  [{panel.unit or 'number'}]", loc="left", fontsize=9, color=_INK)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.3)
    if axes.lines:
        axes.legend(fontsize=7, frameon=False, loc="upper left")
    else:
        axes.text(0.5, 0.5, "nothing counted", transform=axes.transAxes, ha="center", fontsize=8, color="#888888")


def _line(axes: Axes, points: Sequence[tuple[float, float]], start: float, legend: str) -> None:
    finite = [(at - start, value) for at, value in points if math.isfinite(value)]
    if finite:
        axes.plot([at for at, _ in finite], [value for _, value in finite], linewidth=1.2, label=legend)
