"""Numbers between bounds, of a multiple, or of a few values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.json_text import Json

Number = int | float
MAX_GAPS = 32
"""Gaps between avoided multiples that are written one by one."""
MAX_LISTED = 200
"""Negative multiples that are written one by one."""


def exact(number: Number) -> Fraction:
    """The number that the JSON text says, not its binary neighbour."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


@dataclass(frozen=True, slots=True)
class Bound:
    """`value` itself is excluded where `open`."""

    value: Number
    open: bool


@dataclass(frozen=True, slots=True)
class Numbers:
    """All numbers from `low` to `high` (None: no bound), whole ones only where `whole`, multiples of `step` (None: any), and of none of
    `avoided`."""

    low: Bound | None = None
    high: Bound | None = None
    whole: bool = False
    step: Fraction | None = None
    avoided: tuple[Fraction, ...] = ()

    def meet(self, other: Numbers) -> Numbers | None:
        """Both at once; None where nothing is left."""
        low = _tighter(self.low, other.low, 1)
        high = _tighter(self.high, other.high, -1)
        steps = [step for step in (self.step, other.step) if step is not None]
        step = _common(*steps) if len(steps) == 2 else steps[0] if steps else None
        return Numbers(low, high, self.whole or other.whole, step, (*self.avoided, *other.avoided)).tidy()

    def tidy(self) -> Numbers | None:
        """The same set, written with fewer words; None if it is empty. Whole numbers get whole, closed bounds."""
        step = self.step
        whole = self.whole or (step is not None and step.denominator == 1)
        if whole and step is not None:
            step = None if (joint := _common(step, Fraction(1))) == 1 else joint
        low, high = (_whole(self.low, 1), _whole(self.high, -1)) if whole else (self.low, self.high)
        if low and high:
            gap = exact(high.value) - exact(low.value)
            if gap < 0 or (gap == 0 and (low.open or high.open)):
                return None
            if gap == 0 and any(_divides(avoided, exact(low.value)) for avoided in self.avoided):
                return None
            if step is not None and not _has_multiple(step, low, high):
                return None
        counted = step if step is not None else Fraction(1) if whole else None
        if counted is not None and any(_divides(avoided, counted) for avoided in self.avoided):
            return None
        return Numbers(low, high, whole, step, _fewest(self.avoided))

    def complement(self) -> list[Numbers]:
        outside = [Numbers(high=Bound(self.low.value, not self.low.open))] if self.low else []
        outside += [Numbers(low=Bound(self.high.value, not self.high.open))] if self.high else []
        outside += [Numbers(avoided=(Fraction(1),))] if self.whole and (self.step is None or self.step.denominator > 1) else []
        outside += [Numbers(avoided=(self.step,))] if self.step is not None else []
        return outside + [multiples for step in self.avoided if (multiples := Numbers(step=step).tidy()) is not None]

    def without(self, other: Numbers) -> list[Numbers]:
        """Those that are not in the other."""
        step = None if other.step == self.step else other.step
        avoided = tuple(step for step in other.avoided if step not in self.avoided)
        outside = replace(other, whole=other.whole and not self.whole, step=step, avoided=avoided).complement()
        return [both for part in outside if (both := self.meet(part)) is not None]

    def only(self) -> Number | None:
        """The single number that is left, if that is plain to see."""
        if self.low and self.high and self.low.value == self.high.value and self.holds(self.low.value):
            return self.low.value
        return None

    def holds(self, number: Number) -> bool:
        value = exact(number)
        above = self.low is None or value > exact(self.low.value) or (value == exact(self.low.value) and not self.low.open)
        below = self.high is None or value < exact(self.high.value) or (value == exact(self.high.value) and not self.high.open)
        counted = (not self.whole or value.denominator == 1) and (self.step is None or _divides(self.step, value))
        return above and below and counted and not any(_divides(step, value) for step in self.avoided)

    def to_schemas(self) -> list[Json]:
        """Schemas whose union is the set, or of the numbers that are not whole those next to zero: no backend has words for the others.
        Raises Inexact: numbers are no multiples, and too many."""
        parts = self._between_avoided() if self.avoided else [self]
        return [schema for part in parts for schema in part._with_negatives_listed()]

    def _with_negatives_listed(self) -> list[Json]:
        """Backends find no multiples below zero; where there are few, they need not."""
        least = None if self.low is None else exact(self.low.value)
        if self.step is None or least is None or least >= 0 or -least / self.step > MAX_LISTED:
            return [self._to_schema()]
        listed: list[Json] = [number for multiple in _multiples(self.step, least, Fraction(0)) if self.holds(number := _number(multiple))]
        others = self.meet(Numbers(low=Bound(0, True)))
        found: list[Json] = [{"enum": listed}] if listed else []
        return found if others is None else [*found, others._to_schema()]

    def _between_avoided(self) -> list[Numbers]:
        """From each multiple that is avoided to the next."""
        width = MAX_GAPS * min(self.avoided)
        first = -width / 2
        if self.high is not None:
            first = min(first, math.ceil(exact(self.high.value) / width * MAX_GAPS) * width / MAX_GAPS - width)
        if self.low is not None:
            first = max(first, math.floor(exact(self.low.value) / width * MAX_GAPS) * width / MAX_GAPS)
        if self.avoided != (Fraction(1),) and (self.low is None or self.high is None or exact(self.high.value) > first + width):
            raise Inexact("numbers that are no multiples are enforced only between near bounds")
        cuts = sorted({multiple for step in self.avoided for multiple in _multiples(step, first, first + width)})
        plain = replace(self, avoided=())
        gaps = [Numbers(Bound(_number(low), True), Bound(_number(high), True)) for low, high in pairwise(cuts)]
        return [part for gap in gaps if (part := plain.meet(gap)) is not None]

    def _to_schema(self) -> Json:
        schema: dict[str, Json] = {"type": "integer" if self.whole else "number"}
        if self.low:
            schema["exclusiveMinimum" if self.low.open else "minimum"] = self.low.value
        if self.high:
            schema["exclusiveMaximum" if self.high.open else "maximum"] = self.high.value
        if self.step is not None:
            schema["multipleOf"] = _number(self.step)
        return schema


def _tighter(left: Bound | None, right: Bound | None, sign: int) -> Bound | None:
    if left is None or right is None:
        return left or right
    gap = sign * (exact(left.value) - exact(right.value))
    return left if gap > 0 or (gap == 0 and left.open) else right


def _whole(bound: Bound | None, sign: int) -> Bound | None:
    """The bound for whole numbers: `sign` 1 for a lower one, -1 for an upper one."""
    if bound is None:
        return None
    value = exact(bound.value)
    nearest = math.ceil(value) if sign > 0 else math.floor(value)
    return Bound(nearest + sign if bound.open and nearest == value else nearest, False)


def _common(left: Fraction, right: Fraction) -> Fraction:
    """The least common multiple."""
    return Fraction(math.lcm(left.numerator, right.numerator), math.gcd(left.denominator, right.denominator))


def _divides(step: Fraction, number: Fraction) -> bool:
    return (number / step).denominator == 1


def _has_multiple(step: Fraction, low: Bound, high: Bound) -> bool:
    first = math.ceil(exact(low.value) / step) * step
    first += step if low.open and first == exact(low.value) else 0
    return first < exact(high.value) or (first == exact(high.value) and not high.open)


def _multiples(step: Fraction, low: Fraction, high: Fraction) -> list[Fraction]:
    return [step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _fewest(avoided: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Without steps whose multiples are those of another too."""
    return tuple(sorted(step for step in set(avoided) if not any(other != step and _divides(other, step) for other in avoided)))


def _number(value: Fraction) -> Number:
    if value.denominator == 1:
        return value.numerator
    if exact(float(value)) != value:
        raise Inexact("the common multiple is not a number that JSON text can say")
    return float(value)
