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
_SHOWN: dict[str, tuple[Callable[[Figures], float], str]] = {
    "/s": (lambda one: one.answers_per_s, ".0f"),
    "p99 wait, ms": (lambda one: one.wait_p99_ms, ".0f"),
    "p99 in all": (lambda one: one.latency_p99_ms, ".0f"),
    "held": (lambda one: one.resident, ".1f"),
    "loads": (lambda one: one.loads, ".0f"),
    "rows": (lambda one: one.rows_per_step, ".1f"),
}


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


def table(found: Sequence[Ablated]) -> Table:
    """Means over the seeds, and how far these are apart."""
    shown = Table(title="our policy without one heuristic, simulated", title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for heading in ("scenario", "without"):
        shown.add_column(heading, no_wrap=True)
    for heading in (*_SHOWN, "broken"):
        shown.add_column(heading, justify="right", no_wrap=True)
    names = list(dict.fromkeys(one.without for one in found))
    for scenario in dict.fromkeys(one.figures.scenario for one in found):
        for name in names:
            seeds = [one for one in found if (one.without, one.figures.scenario) == (name, scenario)]
            cells = [_cell([of(one.figures) for one in seeds], form) for of, form in _SHOWN.values()]
            broken = sum(len(one.broken) for one in seeds)
            shown.add_row(scenario, name, *cells, str(broken or ""), end_section=name == names[-1])
    return shown


def _cell(values: Sequence[float], form: str) -> str:
    middle = sum(values) / len(values)
    return f"{middle:{form}} ±{(max(values) - min(values)) / 2:{form}}"


def _broken(found: Sequence[Ablated], name: str) -> float:
    return float(sum(len(one.broken) for one in found if one.without == name))
