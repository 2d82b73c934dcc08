"""Draws how many times faster than stock vLLM the arms were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from load_tests.jump_forward.figures import MASKCAST, UNCONSTRAINED, Ratio

_INK = "#333333"
_SHADES = (("#9ecae1", _INK), ("#6baed6", _INK), ("#3182bd", "white"), ("#08519c", "white"), ("#08306b", "white"))
"""Of bars and of what is written on them, the more requests the darker."""


def draw(found: Sequence[Ratio], path: Path) -> None:
    """A PNG: latency above, throughput below, a group of bars for each task, a bar for each batch. Folders are made."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    _panel(above, found, lambda one: one.latency, "median latency\nstock / arm")
    _panel(below, found, lambda one: one.throughput, "requests per second\narm / stock")
    above.set_title("Maskcast with jump-forward against stock vLLM (1 = as fast as stock, higher is faster)", loc="left", color=_INK)
    handles, labels = above.get_legend_handles_labels()
    title = "Maskcast with so many requests at once, and vLLM without constraint"
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, title=title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


def _panel(axes: Axes, found: Sequence[Ratio], of: Callable[[Ratio], float], label: str) -> None:
    tasks = list(dict.fromkeys(one.task for one in found))
    batches = sorted({one.batch for one in found})
    width = 0.8 / len(batches)
    for number, batch in enumerate(batches):
        shade, ink = _SHADES[number % len(_SHADES)]
        ours = _points(found, tasks, batch, MASKCAST, of, width * (number - (len(batches) - 1) / 2))
        axes.bar([x for x, _ in ours], [y for _, y in ours], width * 0.92, color=shade, label=str(batch))
        for x, y in ours:
            # At the foot, where neither the line nor a mark is in the way.
            axes.annotate(f"{y:.2f}", (x, 0), (0, 3), textcoords="offset points", ha="center", fontsize=8, color=ink)
        free = _points(found, tasks, batch, UNCONSTRAINED, of, width * (number - (len(batches) - 1) / 2))
        mark = "vLLM unconstrained" if batch == batches[-1] else None
        axes.plot([x for x, _ in free], [y for _, y in free], "D", color="white", markeredgecolor=_INK, markersize=5, label=mark)
    axes.axhline(1, color=_INK, linewidth=1)
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_ylabel(label, color=_INK)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _points(
    found: Sequence[Ratio], tasks: Sequence[str], batch: int, arm: str, of: Callable[[Ratio], float], shift: float
) -> list[tuple[float, float]]:
    return [(tasks.index(one.task) + shift, of(one)) for one in found if (one.batch, one.arm) == (batch, arm)]
