"""From pieces to rows, and from rows to targets; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployments.reporting.quantiles import median
from deployments.reporting.report import Row, Target
from load_tests.front_door.clients.messages import PiecesCame, WindowEnded

BEFORE = 560.0
"""Pieces a second when each of them was an object of Ray's core: the better of two runs by this benchmark on two cores."""
TIMES = 8


def targets(rows: Sequence[Row]) -> list[Target]:
    """Of medians over runs."""
    pieces = median(row["pieces_per_s"] for row in rows)
    return [
        Target.at_least("pieces a second through the whole door", pieces, TIMES * BEFORE, ""),
        Target.at_most("answers that failed", float(sum(row["failed"] for row in rows)), 0, ""),
    ]


def row(run: int, came: PiecesCame, window: WindowEnded, used: Mapping[str, float], foreign_s: float) -> Row:
    """Shares are those of one processor, `processor_share` by part."""
    return {
        "run": run,
        "seconds": round(window.seconds, 3),
        "pieces_per_s": round(came.pieces / window.seconds, 1),
        "tokens_per_s": round(came.characters / window.seconds, 1),
        "failed": came.failed,
        "gap_p99_ms": None if came.gap_p99_s is None else round(came.gap_p99_s * 1000, 1),
        "processor_share": {part: round(seconds / window.seconds, 3) for part, seconds in sorted(used.items())},
        "client_share": round(window.client_s / window.seconds, 3),
        "foreign_share": round(foreign_s / window.seconds, 3),
    }
