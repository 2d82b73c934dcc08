"""From rows of sets to means with intervals, tables and targets; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from deployments.reporting.report import Row, Target

WITH, WITHOUT = "with the true value", "without the true value"
EXACT = "exact"
PLAIN, ROW, CANONICAL = ARMS = ("plain", "row", "canonical")
SPELLED = "spelled"
"""No masks: the model's own conditional over canonical sequences alone."""
NAMES = {PLAIN: "plain masks", ROW: "mask and row", CANONICAL: "canonical", SPELLED: "no masks, canonical sequences alone"}
PAIRS = ((PLAIN, CANONICAL), (PLAIN, ROW), (ROW, CANONICAL))
RESAMPLES, SEED = 4000, 20261124
LEAST_SETS, MOST_PRUNED, MOST_WORSE = 400, 0.01, 0.01
HEADINGS = ("", "total variation, mean", "95 %", "median", "p90", "likeliest value is another one, sets")
PAIR_HEADINGS = ("", "mean of the differences", "95 %", "nearer, sets", "farther, sets")
_SAME = 1e-4
"""Differences up to this count for neither side."""

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float, float]
"""Mean, and the ends of its 95 % interval."""


def variation(one: Floats, other: Floats) -> float:
    """Total variation distance of two distributions over the same texts."""
    return float(np.abs(one - other).sum() / 2)


def interval(values: Iterable[float]) -> Interval:
    """Bootstrap over sets (percentiles of the means of RESAMPLES samples), the same one at every call. At least one value."""
    found = np.array([*values], np.float64)
    drawn = np.random.default_rng(SEED).integers(0, len(found), (RESAMPLES, len(found)))
    low, high = np.percentile(found[drawn].mean(axis=1), (2.5, 97.5))
    return float(found.mean()), float(low), float(high)


def of_kind(rows: Sequence[Row], kind: str) -> list[Row]:
    """The sets of one kind that were computed."""
    return [row for row in rows if row["set"] == kind and "left_out" not in row]


def difference(rows: Sequence[Row], one: str, other: str) -> Interval:
    """How much farther off one arm is than another, set by set."""
    return interval(row[one] - row[other] for row in rows)


def starved(rows: Sequence[Row]) -> float:
    """The share of draws under mask and row that come to a place where nothing is left, mean over sets."""
    return float(np.mean([row["starved"] for row in rows]))


def cells(rows: Sequence[Row]) -> Iterator[list[str]]:
    """A line an arm, of the sets of one kind."""
    for arm, name in NAMES.items():
        values = [row[arm] for row in rows]
        mean, low, high = interval(values)
        median, most = np.percentile(values, (50, 90))
        others = str(sum(arm in row["another_is_likeliest"].split(", ") for row in rows)) if arm in ARMS else ""
        yield [name, f"{mean:.4f}", f"{low:.4f} to {high:.4f}", f"{median:.4f}", f"{most:.4f}", others]


def pair_cells(rows: Sequence[Row]) -> Iterator[list[str]]:
    """A line a pair of arms, of the sets of one kind: how much nearer to the model's own distribution the second one is."""
    for one, other in PAIRS:
        mean, low, high = difference(rows, one, other)
        gains = [row[one] - row[other] for row in rows]
        counts = (sum(gain > _SAME for gain in gains), sum(gain < -_SAME for gain in gains))
        yield [f"{NAMES[one]} less {NAMES[other]}", f"{mean:+.4f}", f"{low:+.4f} to {high:+.4f}", *map(str, counts)]


def targets(rows: Sequence[Row]) -> Iterator[Target]:
    """What makes the figures exact, and that canonical masks do no harm; that they help is not promised."""
    for kind in (WITH, WITHOUT):
        found = of_kind(rows, kind)
        yield Target.at_least(f"{kind}: sets computed", len(found), LEAST_SETS, "")
        worse = -difference(found, PLAIN, CANONICAL)[1] if found else None
        yield Target.at_most(f"{kind}: canonical farther off than plain masks, upper end of the interval", worse, MOST_WORSE, "")
    computed = [row for row in rows if "left_out" not in row]
    pruned = max((row["pruned"] for row in computed), default=None)
    yield Target.at_most("mass of a set that was given up, at most", pruned, MOST_PRUNED, "")
