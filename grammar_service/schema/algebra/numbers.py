"""Numbers between bounds, of a multiple, or of a few values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.json_text import Json

Number = int | float


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
    """All numbers from `low` to `high` (None: no bound), whole ones only where `whole`, multiples of `step` (None: any)."""

    low: Bound | None = None
    high: Bound | None = None
    whole: bool = False
    step: Fraction | None = None

    def meet(self, other: Numbers) -> Numbers | None:
        """Both at once; None where nothing is left."""
        low = _tighter(self.low, other.low, 1)
        high = _tighter(self.high, other.high, -1)
        steps = [step for step in (self.step, other.step) if step is not None]
        step = _common(*steps) if len(steps) == 2 else steps[0] if steps else None
        return Numbers(low, high, self.whole or other.whole, step).tidy()

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
        return Numbers(low, high, whole, step)

    def complement(self) -> list[Numbers]:
        """Raises Inexact: it would be numbers that are not whole, or not multiples."""
        if self.whole or self.step is not None:
            raise Inexact("the numbers that are not whole, or not multiples, cannot be described")
        outside = [Numbers(high=Bound(self.low.value, not self.low.open))] if self.low else []
        return outside + ([Numbers(low=Bound(self.high.value, not self.high.open))] if self.high else [])

    def without(self, other: Numbers) -> list[Numbers]:
        """Those that are not in the other. Raises Inexact as `complement` does, where these are not of the same kind themselves."""
        step = None if other.step == self.step else other.step
        outside = replace(other, whole=other.whole and not self.whole, step=step).complement()
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
        return (
            above and below and (not self.whole or value.denominator == 1) and (self.step is None or (value / self.step).denominator == 1)
        )

    def to_schema(self) -> dict[str, Json]:
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


def _number(value: Fraction) -> Number:
    if value.denominator == 1:
        return value.numerator
    if exact(float(value)) != value:
        raise Inexact("the common multiple is not a number that JSON text can say")
    return float(value)
