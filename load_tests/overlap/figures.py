"""What a core takes between two forwards, and the rule that comes of it; pure.

Between two segments, r tokens are chosen. A forward takes G, and what the core does between two forwards takes C. Synchronous steps take
r (G + C) for them; overlapping ones, of which there is one more, take (r + 1) max(G, C). So these win where C / r < G < r C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import median
from deployments.reporting.report import Row, Target

PIECES = ("schedule", "inputs", "bookkeeping", "output")
"""Of C: vLLM's and our scheduling of a step; its inputs in the worker, up to the forward; the worker's account of sampled tokens; and what
the scheduler makes of them, with the search for what the grammar forces. Masks are not in it: they are filled beside the forward."""
MOST_FREE = 16
UNSTEADY = 1.3
RULE = (
    "With r free tokens between two segments, the times G of a forward between which overlapping steps take less, C / r < G < r C. Below",
    "the range there is more for the core to do than for the device, above it a forward more for each segment costs more than it saves:",
)
HEADINGS = ("requests", *(f"{piece}, µs" for piece in PIECES), "C, µs")


@dataclass(frozen=True, slots=True)
class Step:
    """Its requests, and microseconds by piece."""

    requests: int
    us: Mapping[str, float]


def row(batch: int, run: int, steps: Iterable[Step]) -> Row:
    """Means over the steps in which all requests of the batch took part, but for the first, which computes their prompts."""
    full = [step for step in list(steps)[1:] if step.requests == batch]
    means = {f"{piece}_us": round(sum(step.us[piece] for step in full) / max(len(full), 1), 1) for piece in PIECES}
    return {"batch": batch, "run": run, "steps": len(full), **means, "c_us": round(sum(means.values()), 1)}


def between_forwards(rows: Sequence[Row]) -> dict[int, float]:
    """C in microseconds by batch: the median over runs."""
    return {batch: _middle(rows, batch, "c_us") for batch in dict.fromkeys(row["batch"] for row in rows)}


def wins(free: int, c: float) -> tuple[float, float] | None:
    """Between which times of a forward overlapping steps win, in the unit of `c`, where `free` tokens are chosen between two segments;
    None: never."""
    return (c / free, c * free) if free > 1 else None


def targets(rows: Sequence[Row]) -> list[Target]:
    by_batch = [[row["c_us"] for row in rows if row["batch"] == batch] for batch in between_forwards(rows)]
    spread = [max(found) / min(found) for found in by_batch if min(found) > 0]
    return [Target.at_most("C from run to run, largest / smallest, where it is worst", max(spread, default=None), UNSTEADY, "")]


def cells(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each batch: medians over runs."""
    names = [*(f"{piece}_us" for piece in PIECES), "c_us"]
    return [[str(batch), *(f"{_middle(rows, batch, name):.0f}" for name in names)] for batch in between_forwards(rows)]


def rule_headings(rows: Sequence[Row]) -> list[str]:
    return ["r", *(f"{batch} request{'s' * (batch > 1)}" for batch in between_forwards(rows))]


def rule_cells(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each r: the times of a forward in which overlapping steps win, in milliseconds, for each batch."""
    found = between_forwards(rows).values()
    return [[str(free), *(_range(wins(free, c)) for c in found)] for free in range(1, MOST_FREE + 1)]


def _range(found: tuple[float, float] | None) -> str:
    return "never" if found is None else f"{found[0] / 1000:.2g} to {found[1] / 1000:.2g} ms"


def _middle(rows: Sequence[Row], batch: int, name: str) -> float:
    return median(row[name] for row in rows if row["batch"] == batch) or 0.0
