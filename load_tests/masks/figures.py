"""What the benchmark of the mask path measures, and what it promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import median
from deployments.reporting.report import Row, Target
from load_tests.masks.scenarios import ALL, ONE, SOME

STOCK, OURS = "stock vLLM", "broadcaster"
AT = 256
"""Requests, in the targets."""
BYTES = ((ONE, 0, 12), (SOME, 0, 4), (ALL, 0, 2), (ONE, 8, 20), (SOME, 8, 20), (ALL, 8, 20))
ENGINE, WORKER = 5, 2


@dataclass(frozen=True, slots=True)
class Plan:
    requests: Sequence[int]
    drafts: Sequence[int]
    workers: Sequence[int]
    scenarios: Sequence[str]
    steps: int
    most_rows: int


@dataclass(frozen=True, slots=True)
class StepCost:
    """Of one step on one side, in seconds; `worker_s`: of the slowest worker; `filled_s`: until the masks were there."""

    masks_s: float
    accept_s: float
    filled_s: float
    worker_s: float
    worker_bytes: int


@dataclass(frozen=True, slots=True)
class MaskCell:
    """`cpu_s`: of all processes of a side over all its steps."""

    scenario: str
    requests: int
    drafts: int
    workers: int
    side: str
    steps: Sequence[StepCost]
    cpu_s: float


def row_of(cell: MaskCell) -> dict[str, str | float]:
    """Medians over the steps."""

    def ms(name: str) -> float:
        return round((median(getattr(step, name) for step in cell.steps) or 0.0) * 1000, 3)

    return {
        "scenario": cell.scenario,
        "requests": cell.requests,
        "drafts": cell.drafts,
        "workers": cell.workers,
        "side": cell.side,
        "engine_ms": ms("masks_s"),
        "accept_ms": ms("accept_s"),
        "filled_ms": ms("filled_s"),
        "worker_ms": ms("worker_s"),
        "worker_bytes": median(step.worker_bytes for step in cell.steps) or 0.0,
        "cpu_s_per_1000_tokens": round(1000 * cell.cpu_s / (cell.requests * len(cell.steps)), 4),
    }


def ratios(rows: Sequence[Row], figure: str, scenario: str, drafts: int, requests: int = AT) -> list[float]:
    """Stock by ours, one for each number of workers."""
    sides = {(row["workers"], row["side"]): row[figure] for row in rows if _is(row, scenario, drafts, requests)}
    return [sides[workers, STOCK] / sides[workers, OURS] for workers, side in sides if side == OURS and (workers, STOCK) in sides]


def targets(rows: Sequence[Row]) -> list[Target]:
    """Each is the least over the numbers of workers, and over scenarios where it names none."""
    found = [
        Target.at_least(
            f"bytes a step and worker, stock by ours: {scenario}, K = {drafts}", _least(rows, "worker_bytes", scenario, drafts), bound, "×"
        )
        for scenario, drafts, bound in BYTES
    ]
    for name, figure, bound in (("the engine's thread", "engine_ms", ENGINE), ("a worker, forward to masked logits", "worker_ms", WORKER)):
        for drafts in (0, 8):
            least = [value for scenario in (ONE, SOME, ALL) if (value := _least(rows, figure, scenario, drafts)) is not None]
            value = min(least) if least else None
            found.append(Target.at_least(f"{name}, stock by ours: {AT} requests, K = {drafts}", value, bound, "×"))
    return found


def _least(rows: Sequence[Row], figure: str, scenario: str, drafts: int) -> float | None:
    return min(ratios(rows, figure, scenario, drafts), default=None)


def _is(row: Row, scenario: str, drafts: int, requests: int) -> bool:
    return (row.get("scenario"), row.get("drafts"), row.get("requests")) == (scenario, drafts, requests)


HEADINGS = ("masks", "requests", "K", "TP", "engine, ms", "masks there, ms", "worker, ms", "KiB a worker", "CPU s per 1,000 tokens")


def pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The cells of both sides, stock and ours."""
    found: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        cell = tuple(row[name] for name in ("scenario", "requests", "drafts", "workers"))
        found.setdefault(cell, {})[row["side"]] = row
    return [(sides[STOCK], sides[OURS]) for sides in found.values() if len(sides) == 2]


def cells(stock: Row, ours: Row) -> list[str]:
    """A pair as it is shown, see `HEADINGS`."""
    figures = [f"{stock[name]:.2f} → {ours[name]:.2f}" for name in ("engine_ms", "filled_ms", "worker_ms")]
    sizes = f"{stock['worker_bytes'] / 1024:,.0f} → {ours['worker_bytes'] / 1024:,.0f}"
    used = f"{stock['cpu_s_per_1000_tokens']:.2f} → {ours['cpu_s_per_1000_tokens']:.2f}"
    return [stock["scenario"], *(str(stock[name]) for name in ("requests", "drafts", "workers")), *figures, sizes, used]
