"""`maskcast simulate`: policies of routing compared on replicas that are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from deployments.commands.promises import promises
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.errors import MaskcastError
from router.simulation.ablation import WITHOUT
from router.simulation.figures import Figures
from router.simulation.policies import MASKCAST, POLICIES
from router.simulation.scenarios import Size, recorded, synthetic
from router.simulation.traffic import read_trace
from router.simulation.world import Scenario, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PACKAGES = ("maskcast", "numpy")
Progress = Callable[[str, int, int], None]
"""Hears what is played, how many requests of it have been answered, and how many there are."""
_SHADES = ("#c6dbef", "#9ecae1", "#6baed6", "#08519c")
_INK = "#333333"
_CAPTION = (
    "/s: answers a second; p50, p99: arrival to first token; skew: requests on the most loaded replica / mean; "
    "held: grammars on a replica; rows: distinct masks in a step; loads: grammars compiled or fetched; prefix: prompts whose beginning "
    "was in the prefix cache"
)


class SimulationFailed(MaskcastError):
    """There is nothing to play, or nothing to draw with; the message says what to do."""


def scenarios(size: Size, seed: int, trace: Path | None = None, only: str | None = None) -> list[Scenario]:
    """Synthetic ones, or `only` the one of that name, or the one that was recorded. Raises SimulationFailed: there is no such scenario, or
    the trace cannot be read."""
    if trace is None:
        named = {scenario.name: scenario for scenario in synthetic(size, seed)}
        if only is not None and only not in named:
            raise SimulationFailed(f"there is no scenario {only!r}, only {', '.join(named)}")
        return list(named.values()) if only is None else [named[only]]
    try:
        requests = read_trace(trace)
    except (ValueError, OSError) as error:
        raise SimulationFailed(f"{trace} is no trace: {error}") from error
    if not requests:
        raise SimulationFailed(f"{trace} holds no request")
    return recorded(size, requests)


def simulate(played: Sequence[Scenario], seed: int, progress: Progress, without: Sequence[str] = ()) -> list[Figures]:
    """Every policy in every scenario, ours `without` some heuristics. Raises SimulationFailed: there is no such heuristic."""
    if unknown := [name for name in without if name not in WITHOUT]:
        raise SimulationFailed(f"there is no heuristic {unknown[0]!r}, only {', '.join(WITHOUT)}")
    return [play(scenario, policy, seed, progress, without) for scenario in played for policy in POLICIES]


def play(scenario: Scenario, policy: str, seed: int, progress: Progress, without: Sequence[str] = ()) -> Figures:
    name, total = ", ".join([scenario.name, policy, *without]), len(scenario.requests)
    outcome = World(scenario, policy, seed, without).run(lambda done: progress(name, done, total))
    return Figures.of(scenario, policy, outcome)


def report(command: str, found: Sequence[Figures]) -> BenchReport:
    return BenchReport.here(command, PACKAGES, list(targets(found)), [figures.row() for figures in found])


def targets(found: Sequence[Figures]) -> Iterator[Target]:
    """Routing by schema keeps each grammar on few replicas, and pays for it with no throughput and little waiting."""
    for scenario in dict.fromkeys(one.scenario for one in found):
        by_policy = {one.policy: one for one in found if one.scenario == scenario}
        yield from promises(by_policy[MASKCAST], by_policy)


FIGURES = ("/s", "p50 ms", "p99 ms", "skew", "held", "rows", "loads", "prefix")


def cells(row: Row) -> list[str]:
    """A row's figures as they are shown, see `FIGURES`."""
    waits = [f"{ms:.1f}" if ms < 1000 else f"{ms:,.0f}" for ms in (row["wait_p50_ms"], row["wait_p99_ms"])]
    spread = f"{row['imbalance']:.2f}", f"{row['resident']:.0f}", f"{row['rows_per_step']:.3g}"
    return [f"{row['answers_per_s']:,.0f}", *waits, *spread, f"{row['compiled'] + row['fetched']:,}", f"{100 * row['prefix_hits']:.0f}%"]


def table(found: Sequence[Figures]) -> Table:
    """All figures, for a terminal."""
    shown = Table(title="routing, simulated", title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for heading in ("scenario", "policy"):
        shown.add_column(heading, no_wrap=True)
    for heading in FIGURES:
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.caption = _CAPTION
    for number, one in enumerate(found):
        last = number % len(POLICIES) == len(POLICIES) - 1
        shown.add_row(one.scenario, one.policy, *cells(one.row()), end_section=last)
    return shown


def draw(found: Sequence[Figures], path: Path) -> None:
    """A PNG: a panel for each of six figures, a group of bars for each scenario. Folders are made. Raises SimulationFailed without
    matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SimulationFailed("a plot needs matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(16, 13), layout="constrained")
    for axes, panel in zip(figure.subplots(3, 2).flat, _PANELS, strict=True):
        _draw_panel(axes, panel, found)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(POLICIES), frameon=False)
    title = f"Routing, simulated: {found[0].requests:,} requests on {found[0].replicas:,} replicas in the first scenario"
    figure.suptitle(title, color=_INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


@dataclass(frozen=True, slots=True)
class _Panel:
    """`foot`: where bars begin, on a logarithmic scale that is not 0."""

    title: str
    value: Callable[[Figures], float]
    form: str
    foot: float = 0.0


_PANELS = (
    _Panel("p99 wait to the first token, ms (logarithmic)", lambda one: one.wait_p99_ms, "{:,.0f}", 10.0),
    _Panel("requests on the most loaded replica / mean (logarithmic)", lambda one: one.imbalance, "{:.2f}", 1.0),
    _Panel("grammar loads: compiled or fetched (logarithmic)", lambda one: one.loads, "{:,.0f}", 10.0),
    _Panel("grammars resident on a replica", lambda one: one.resident, "{:.0f}"),
    _Panel("different mask rows in a step", lambda one: one.rows_per_step, "{:.1f}"),
    _Panel("prompts that met their prefix cache, %", lambda one: 100 * one.prefix_hits, "{:.0f}"),
)


def _draw_panel(axes: Axes, panel: _Panel, found: Sequence[Figures]) -> None:
    names = list(dict.fromkeys(one.scenario for one in found))
    for number, (policy, shade) in enumerate(zip(POLICIES, _SHADES, strict=True)):
        values = [max(panel.foot, panel.value(one)) for one in found if one.policy == policy]
        places = [group + 0.22 * (number - 1.5) for group in range(len(names))]
        bars = axes.bar(places, [value - panel.foot for value in values], 0.2, bottom=panel.foot, color=shade, label=policy)
        axes.bar_label(bars, [panel.form.format(value) for value in values], fontsize=7, padding=2, color=_INK, rotation=90)
    axes.set_title(panel.title, loc="left", color=_INK, fontsize=10)
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
    axes.margins(y=0.15)
    if panel.foot:
        axes.set_yscale("log")
    axes.set_ylim(bottom=panel.foot)
    # The bars say their values.
    axes.yaxis.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
