"""Draws what was sampled: a panel for each series that belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from load_tests.soak.judging import THOUSAND, Trend
from load_tests.soak.sampling import FILES, KEYS, MEMFDS, MEMORY, OBJECTS, REDIS, SHARED, ZOMBIES, Sample

INK = "#333333"
COLUMNS = 3
UNITS = {MEMORY: "MiB", SHARED: "MiB", MEMFDS: "MiB", REDIS: "MiB"}
WHOLE = (SHARED, MEMFDS, KEYS, REDIS, OBJECTS, ZOMBIES)


def draw(samples: Sequence[Sample], trends: Sequence[Trend], after: int, path: Path) -> None:
    """A PNG: each series over the requests that have ended, shaded until all was warm, with the line that was found after it. Folders are
    made."""
    kinds = [*(trend.series for trend in trends if trend.series.startswith(f"{MEMORY}:")), FILES, *WHOLE]
    lines = -(-len(kinds) // COLUMNS)
    figure = Figure(figsize=(13, 2.3 * lines), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, squeeze=False).flat
    for kind, axes in zip(kinds, panels, strict=False):  # kinds first: when they end, no panel has been taken for nothing
        _panel(axes, kind, samples, [trend for trend in trends if trend.series == kind or trend.series.startswith(f"{kind}:")], after)
    for axes in panels:
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _panel(axes: Axes, kind: str, samples: Sequence[Sample], trends: Sequence[Trend], after: int) -> None:
    ended = [sample.ended for sample in samples]
    for trend in trends:
        values = [sample.values.get(trend.series, 0.0) for sample in samples]
        (line,) = axes.plot(ended, values, linewidth=1, label=trend.series.partition(": ")[2] or None)
        middle = (after + ended[-1]) / 2
        ends = [trend.level + trend.slope * (each - middle) / THOUSAND for each in (after, ended[-1])]
        axes.plot([after, ended[-1]], ends, color="#cc3311" if trend.grows else line.get_color(), linestyle="--", linewidth=1)
    axes.axvspan(0, after, color="#eeeeee", zorder=0)
    axes.set_title(
        f"{kind} [{UNITS[kind.partition(':')[0]]}]" if kind.partition(":")[0] in UNITS else kind, loc="left", fontsize=9, color=INK
    )
    axes.set_xlim(0, max(ended[-1], 1))
    axes.set_ylim(0, 1.15 * max([1.0, *(sample.values.get(trend.series, 0.0) for sample in samples for trend in trends)]))
    axes.tick_params(labelsize=8)
    if len(trends) > 1:
        axes.set_ylim(top=1.5 * axes.get_ylim()[1])
        axes.legend(frameon=False, fontsize=6, ncols=3, loc="upper center")
