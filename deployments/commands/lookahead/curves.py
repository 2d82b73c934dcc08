"""Draws what thresholds satisfy and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deployments.commands.lookahead.cases import TuningFailed
from deployments.commands.lookahead.grid import Tried

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHADES = ("#9ecae1", "#3182bd", "#08306b", "#6baed6")
_INK, _MARK = "#333333", "#d94801"


def draw(tried: Sequence[Tried], taken: Tried, path: Path) -> None:
    """A PNG: a column for each b, what is satisfied above and what a token costs below, over r_t, a line for each a_t; what is taken has a
    ring. Folders are made. Raises TuningFailed without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TuningFailed("curves need matplotlib: pip install matplotlib") from None
    leads = sorted({one.thresholds.b for one in tried})
    figure = Figure(figsize=(4 * len(leads), 6.5), layout="constrained")
    rows = figure.subplots(2, len(leads), sharex=True, sharey="row", squeeze=False)
    for column, b in enumerate(leads):
        of_b = [one for one in tried if one.thresholds.b == b]
        _panel(rows[0][column], of_b, taken, lambda one: 100 * one.satisfied)
        _panel(rows[1][column], of_b, taken, lambda one: one.p)
        rows[0][column].set_title(f"b = {b}", loc="left", color=_INK)
        rows[1][column].set_xlabel("r_t", color=_INK)
    rows[0][0].set_ylabel("answers satisfied, %", color=_INK)
    rows[1][0].set_ylabel("forwards a token", color=_INK)
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, tried: Sequence[Tried], taken: Tried, of: Callable[[Tried], float]) -> None:
    for number, a_t in enumerate(sorted({one.thresholds.a_t for one in tried})):
        line = sorted((one.thresholds.r_t, of(one)) for one in tried if one.thresholds.a_t == a_t)
        axes.plot([x for x, _ in line], [y for _, y in line], "o-", color=_SHADES[number % len(_SHADES)], label=f"a_t = {a_t:g}")
    if taken in tried:
        axes.plot([taken.thresholds.r_t], [of(taken)], "o", markersize=14, fillstyle="none", color=_MARK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)
