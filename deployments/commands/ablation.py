"""`maskcast simulate --ablate`: what each heuristic of the router is good for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from deployments.commands.promises import promises
from deployments.commands.simulation import PACKAGES, Progress, play
from deployments.reporting.report import BenchReport, Row, Target
from router.simulation.ablation import SHOWN_ELSEWHERE, WITHOUT
from router.simulation.figures import Figures
from router.simulation.policies import CONSISTENT, MASKCAST, POWER_OF_TWO
from router.simulation.world import Scenario

NOTHING = "nothing"
_SHOWN: dict[str, tuple[Callable[[Row], float], str]] = {
    "/s": (lambda row: row["answers_per_s"], ".0f"),
    "p99 wait, ms": (lambda row: row["wait_p99_ms"], ".0f"),
    "p99 in all": (lambda row: row["latency_p99_ms"], ".0f"),
    "held": (lambda row: row["resident"], ".1f"),
    "loads": (lambda row: row["compiled"] + row["fetched"], ".0f"),
    "rows": (lambda row: row["rows_per_step"], ".1f"),
}
FIGURES = tuple(_SHOWN)


@dataclass(frozen=True, slots=True)
class Ablated:
    """Our policy `without` a heuristic, or power of two choices, in one scenario and for one seed; the promises that are `broken`."""

    without: str
    seed: int
    figures: Figures
    broken: tuple[str, ...] = ()

    def row(self) -> Row:
        return {"without": self.without, "seed": self.seed, "broken": list(self.broken), **self.figures.row()}


def ablate(scenarios: Sequence[Scenario], seed: int, progress: Progress) -> Iterator[Ablated]:
    """Every heuristic in every scenario."""
    for scenario in scenarios:
        others = {policy: play(scenario, policy, seed, progress) for policy in (POWER_OF_TWO, CONSISTENT)}
        yield Ablated(POWER_OF_TWO, seed, others[POWER_OF_TWO])
        for name in (NOTHING, *WITHOUT):
            ours = play(scenario, MASKCAST, seed, progress, [] if name == NOTHING else [name])
            yield Ablated(name, seed, ours, tuple(target.name for target in promises(ours, others) if not target.holds))


def report(command: str, found: Sequence[Ablated]) -> BenchReport:
    """The targets: the whole policy breaks no promise, and without any of its heuristics it does, but for those that others show."""
    kept = Target.at_most("promises that are broken without nothing", _broken(found, NOTHING), 0, "")
    shown = [name for name in WITHOUT if name not in SHOWN_ELSEWHERE]
    needed = [Target.at_least(f"promises that are broken without {name}", _broken(found, name), 1, "") for name in shown]
    return BenchReport.here(command, PACKAGES, [kept, *needed], [one.row() for one in found])


@dataclass(frozen=True, slots=True)
class Averaged:
    """Over all seeds. `cells`: see `FIGURES`; `broken`: a promise as often as it is."""

    scenario: str
    without: str
    cells: list[str]
    broken: list[str]


def averaged(rows: Sequence[Row]) -> Iterator[Averaged]:
    """Of each scenario and heuristic in a report: means, and how far the seeds are from them."""
    names = dict.fromkeys(row["without"] for row in rows)
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        for name in names:
            seeds = [row for row in rows if (row["scenario"], row["without"]) == (scenario, name)]
            cells = [_cell([of(row) for row in seeds], form) for of, form in _SHOWN.values()]
            yield Averaged(scenario, name, cells, [promise for row in seeds for promise in row["broken"]])


def table(found: Sequence[Ablated]) -> Table:
    """For a terminal."""
    shown = Table(title="our policy without one heuristic, simulated", title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for heading in ("scenario", "without"):
        shown.add_column(heading, no_wrap=True)
    for heading in (*FIGURES, "broken"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in averaged([ablated.row() for ablated in found]):
        if one.without == POWER_OF_TWO:
            shown.add_section()
        shown.add_row(one.scenario, one.without, *one.cells, str(len(one.broken) or ""))
    return shown


def _cell(values: Sequence[float], form: str) -> str:
    middle = sum(values) / len(values)
    return f"{middle:{form}} ±{(max(values) - min(values)) / 2:{form}}"


def _broken(found: Sequence[Ablated], name: str) -> float:
    return float(sum(len(one.broken) for one in found if one.without == name))
