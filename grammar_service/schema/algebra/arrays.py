"""Arrays by their items."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, Expression, every, negated
from grammar_service.schema.algebra.inexact import Inexact

MAX_PREFIX = 64
"""Items told apart by their place: 14 ms to intersect as many, 90 ms for all arrays of which one is another."""


@dataclass(frozen=True, slots=True)
class Contained:
    """At least `least` and at most `most` (None: any number of) items satisfy `item`."""

    item: Expression
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of `least` to `most` items (None: no bound): the first ones satisfy `prefix`, the others `rest`.

    `seen` is how many items at the start have been evaluated, in the sense of `unevaluatedItems`; None: all of them.
    """

    prefix: tuple[Expression, ...] = ()
    rest: Expression = ANYTHING
    least: int = 0
    most: int | None = None
    contained: tuple[Contained, ...] = ()
    unique: bool = False
    seen: int | None = 0

    def meet(self, other: Arrays) -> Arrays | None:
        """Both at once; None where nothing is left."""
        length = max(len(self.prefix), len(other.prefix))
        if length > MAX_PREFIX:
            raise Inexact(f"arrays of more than {MAX_PREFIX} `prefixItems` are not combined")
        bounds = [most for most in (self.most, other.most) if most is not None]
        return Arrays(
            tuple(every(self.item(index), other.item(index)) for index in range(length)),
            every(self.rest, other.rest),
            max(self.least, other.least),
            min(bounds) if bounds else None,
            tuple(dict.fromkeys((*self.contained, *other.contained))),
            self.unique or other.unique,
            None if self.seen is None or other.seen is None else max(self.seen, other.seen),
        ).tidy()

    def item(self, index: int) -> Expression:
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def tidy(self) -> Arrays | None:
        """The same arrays; None if there are plainly none. An item that nothing satisfies bounds the length."""
        ends = [index for index, item in enumerate((*self.prefix, self.rest)) if item == NOTHING]
        bounds = [*ends[:1], *([] if self.most is None else [self.most])]
        most = min(bounds) if bounds else None
        if most is not None and self.least > most:
            return None
        prefix = self.prefix if most is None else self.prefix[:most]
        while prefix and prefix[-1] == self.rest:
            prefix = prefix[:-1]
        rest = NOTHING if most is not None and len(prefix) >= most else self.rest
        return Arrays(prefix, rest, self.least, most, self.contained, self.unique and (most is None or most > 1), self.seen)

    def complement(self) -> list[Arrays]:
        """Of tidy arrays. Raises Inexact: some item of many, or two equal ones."""
        if self.unique or any(part.least > 1 or part.most is not None for part in self.contained):
            raise Inexact("arrays with equal items, or with so many of some kind, cannot be described")
        outside = [Arrays(most=self.least - 1)] if self.least else []
        outside += [Arrays(least=self.most + 1)] if self.most is not None else []
        for index, item in enumerate(self.prefix):
            if item != ANYTHING:
                outside.append(Arrays((ANYTHING,) * index + (negated(item),), least=index + 1))
        outside += [Arrays(rest=negated(part.item)) for part in self.contained]
        kept = [arrays for shape in outside if (arrays := shape.tidy()) is not None]
        return kept + self._outside_rest()

    def _outside_rest(self) -> list[Arrays]:
        if self.rest in (ANYTHING, NOTHING):
            return []
        if self.most is None or self.most > MAX_PREFIX:
            raise Inexact(f"arrays in which some item is of some kind cannot be described, save for `maxItems` of at most {MAX_PREFIX}")
        first = len(self.prefix)
        return [Arrays((ANYTHING,) * index + (negated(self.rest),), least=index + 1) for index in range(first, self.most)]
