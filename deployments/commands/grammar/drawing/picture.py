"""Automata as a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, PathPatch
from matplotlib.path import Path as Curve

from deployments.commands.grammar.drawing.layers import Layout, Place, layout
from deployments.commands.grammar.drawing.panel import Panel

_INK, _LINE, _FORCED, _FREE = "#333333", "#8c96a3", "#deebf7", "white"
_LAYER, _LANE, _LETTER = 0.95, 0.34, 0.075
"""Inches: from layer to layer at least, from lane to lane, and what a letter takes."""
_RADIUS = 0.13
"""Of a state, in inches."""


def draw(panels: Sequence[Panel], path: Path) -> None:
    """A panel below the other, states with one way on filled, states that a text may end in with a double line. Folders are made."""
    layouts = [layout(panel) for panel in panels]
    heights = [found.height * _LANE + 0.9 for found in layouts]
    steps = [_step(panel) for panel in panels]
    width = max(max(x for x, _ in found.places.values()) * step for found, step in zip(layouts, steps, strict=True)) + 1.2
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    rows = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)
    for axes, panel, found, step in zip(rows[:, 0], panels, layouts, steps, strict=True):
        _draw_panel(axes, panel, found, step, width)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _step(panel: Panel) -> float:
    """From layer to layer: room for each label."""
    return max(_LAYER, 0.5 + _LETTER * max((len(edge.label) for edge in panel.edges), default=0))


def _draw_panel(axes: Axes, panel: Panel, found: Layout, step: float, width: float) -> None:
    lanes = [lane for _, lane in found.places.values()] + [lane for way in found.ways for _, lane in way]
    axes.set_xlim(-0.6, width - 0.6)
    axes.set_ylim(min(lanes) * _LANE - 0.35, max(lanes) * _LANE + 0.35)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(panel.title, loc="left", fontsize=10, color=_INK)
    for edge, way in zip(panel.edges, found.ways, strict=True):
        _draw_edge(axes, [(x * step, y * _LANE) for x, y in way], edge.label)
    for state, (x, y) in found.places.items():
        _draw_state(axes, (x * step, y * _LANE), str(state), state in panel.single, state in panel.accepting)


def _draw_state(axes: Axes, at: Place, name: str, is_single: bool, ends: bool) -> None:
    axes.add_patch(Circle(at, _RADIUS, facecolor=_FORCED if is_single else _FREE, edgecolor=_INK, linewidth=1, zorder=3))
    if ends:
        axes.add_patch(Circle(at, _RADIUS * 0.75, facecolor="none", edgecolor=_INK, linewidth=0.8, zorder=4))
    axes.text(*at, name, ha="center", va="center", fontsize=6.5, color=_INK, zorder=5)


def _draw_edge(axes: Axes, way: Sequence[Place], label: str) -> None:
    first, last = way[0], way[-1]
    middle = _draw_back(axes, first, last) if first[0] >= last[0] else _draw_forward(axes, way)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    axes.text(*middle, label, ha="center", va="center", fontsize=6.5, family="monospace", color=_INK, zorder=2, bbox=box)


def _draw_forward(axes: Axes, way: Sequence[Place]) -> Place:
    """A curve through all places, level in each of them, and an arrow at its end."""
    *before, end = way
    points = [*before, (end[0] - _RADIUS - 0.06, end[1])]
    corners = [points[0]]
    for (left, low), (right, high) in pairwise(points):
        half = (left + right) / 2
        corners += [(half, low), (half, high), (right, high)]
    codes = [Curve.MOVETO, *[Curve.CURVE4] * (len(corners) - 1)]
    axes.add_patch(PathPatch(Curve(np.array(corners), codes), facecolor="none", edgecolor=_LINE, linewidth=0.9, zorder=1))
    _draw_arrow(axes, points[-1], (end[0] - _RADIUS, end[1]))
    if len(way) > 2:
        return way[len(way) // 2]
    return (points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2


def _draw_back(axes: Axes, first: Place, last: Place) -> Place:
    """An arc above both."""
    span = first[0] - last[0]
    start, end = ((first[0] - 0.05, first[1]), (first[0] + 0.05, first[1])) if not span else (first, last)
    rise = 0.3 + 0.12 * span
    top = max(first[1], last[1]) + rise
    reach = 0.25 if not span else 0.0
    corners = [start, (start[0] - reach, top + 0.1), (end[0] + reach, top + 0.1), end]
    codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    curve = PathPatch(Curve(np.array(corners), codes), facecolor="none", edgecolor=_LINE, linewidth=0.9, zorder=1)
    axes.add_patch(curve)
    _draw_arrow(axes, (end[0], end[1] + _RADIUS + 0.06), (end[0], end[1] + _RADIUS))
    return (start[0] + end[0]) / 2, (first[1] + last[1]) / 2 + 0.75 * (top + 0.1 - (first[1] + last[1]) / 2)


def _draw_arrow(axes: Axes, start: Place, end: Place) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, color=_LINE, linewidth=0, zorder=1))
