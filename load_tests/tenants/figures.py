"""From the rows of a run to what was promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Row, Target

ALONE, BESIDE, AFTER = "alone", "beside", "after"
TOGETHER, KILLED = "two ingresses", "Redis killed"
SLOWER = 1.5
HOSTILE_S = 1.0
SHARE_OFF = 0.1
SHARE_OFF_OF_TWO = 0.15
"""Where two ingresses give the turns, who hear of each other now and then."""
OVER_LIMITS = 2
"""Without Redis each of two ingresses grants a tenant's limits."""
SPREAD = 0.25
GROWN = 1.1


def targets(rows: Sequence[Row]) -> list[Target]:
    return [*_light(rows), *_hostile(rows), *_weights(rows), *_ingresses(rows), *_memory(rows)]


def _light(rows: Sequence[Row]) -> Iterator[Target]:
    alone: float | None = None
    for row in rows:
        if row.get("phase") == ALONE:
            alone = row["first_p99_ms"]
        elif row.get("phase") in (BESIDE, AFTER) and "first_p99_ms" in row:
            value = ratio(row["first_p99_ms"], alone) if row["first_p99_ms"] is not None else None
            yield Target.at_most(f"{row['scenario']}: light clients' p99 time to first token, {row['phase']} / alone", value, SLOWER, "")
    if asked := [row for row in rows if "failed" in row and "phase" in row]:
        yield Target.at_most("requests of light clients that failed", float(sum(row["failed"] for row in asked)), 0, "")


def _hostile(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if "slowest_s" in row:
            yield Target.at_most(f"{row['scenario']}: slowest answer", row["slowest_s"], HOSTILE_S, "s")


def _weights(rows: Sequence[Row]) -> Iterator[Target]:
    for scenario, most in (("weights", SHARE_OFF), (TOGETHER, SHARE_OFF_OF_TWO)):
        shares = [row["share_by_due"] for row in rows if row["scenario"] == scenario and "share_by_due" in row]
        if shares:
            worst = max(abs(share - 1) for share in shares) if None not in shares else None
            where = ", by two ingresses" if scenario == TOGETHER else ""
            yield Target.at_most(f"weights 1 : 2 : 4{where}: a share's distance from what is due, of that", worst, most, "")
    if failed := [row["failed"] for row in rows if row["scenario"] in ("weights", TOGETHER) and "share_by_due" in row]:
        yield Target.at_most("requests of floods with weights that failed", float(sum(failed)), 0, "")


def _ingresses(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if "fewest" in row:
            yield Target.at_least(
                "two ingresses: connections at the one that has fewer, of all", ratio(row["fewest"], row["held"]), SPREAD, ""
            )
        if "used_by_limit" in row:
            name = f"Redis killed: {row['limit']}, used by a tenant that asks for more / its limit"
            yield Target.at_most(name, row["used_by_limit"], OVER_LIMITS, "")
    if after := [row["answered_after"] for row in rows if "answered_after" in row]:
        yield Target.at_least("Redis killed: answers to tenants with limits after it", float(sum(after)), 1, "")
    if killed := [row["failed"] for row in rows if row["scenario"] == KILLED and "failed" in row]:
        yield Target.at_most("Redis killed: requests that failed", float(sum(killed)), 0, "")


def _memory(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if row["scenario"] == "memory":
            yield Target.at_most(f"memory after {row['of']} / before", ratio(row["after_mib"], row["before_mib"]), GROWN, "")
        if row.get("connections") is not None:
            yield Target.at_least(f"{row['scenario']}: open at a time", float(row["connections"]), row["wanted"], "")
