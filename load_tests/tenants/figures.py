"""From the rows of a run to what was promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Row, Target

ALONE, BESIDE, AFTER = "alone", "beside", "after"
SLOWER = 1.5
HOSTILE_S = 1.0
SHARE_OFF = 0.1
GROWN = 1.1


def targets(rows: Sequence[Row]) -> list[Target]:
    return [*_light(rows), *_hostile(rows), *_weights(rows), *_memory(rows)]


def _light(rows: Sequence[Row]) -> Iterator[Target]:
    alone: float | None = None
    for row in rows:
        if row.get("phase") == ALONE:
            alone = row["first_p99_ms"]
        elif row.get("phase") in (BESIDE, AFTER) and "first_p99_ms" in row:
            value = ratio(row["first_p99_ms"], alone) if row["first_p99_ms"] is not None else None
            yield Target.at_most(f"{row['scenario']}: light clients' p99 time to first token, {row['phase']} / alone", value, SLOWER, "")
    if asked := [row for row in rows if "failed" in row]:
        yield Target.at_most("requests of light clients that failed", float(sum(row["failed"] for row in asked)), 0, "")


def _hostile(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if "slowest_s" in row:
            yield Target.at_most(f"{row['scenario']}: slowest answer", row["slowest_s"], HOSTILE_S, "s")


def _weights(rows: Sequence[Row]) -> Iterator[Target]:
    shares = [row["share_by_due"] for row in rows if row["scenario"] == "weights"]
    if shares:
        worst = max(abs(share - 1) for share in shares) if None not in shares else None
        yield Target.at_most("weights 1 : 2 : 4: a share's distance from what is due, of that", worst, SHARE_OFF, "")


def _memory(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if row["scenario"] == "memory":
            yield Target.at_most("memory after all connections / before", ratio(row["after_mib"], row["before_mib"]), GROWN, "")
        if row.get("connections") is not None:
            yield Target.at_least(f"{row['scenario']}: open at a time", float(row["connections"]), row["wanted"], "")
