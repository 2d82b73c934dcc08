"""A schema as alternatives by type: what it leaves of null, booleans, numbers, strings, arrays and objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Protocol, Self, TypeVar

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.expression import NOTHING, Empty, Every, Expression
from grammar_service.schema.algebra.inexact import Inexact, Reason
from grammar_service.schema.algebra.numbers import Numbers
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.pointer import join

MAX_ALTERNATIVES = 200
"""Shapes in the union of one type: to intersect two of such unions makes 40,000 pairs."""
STEPS_A_PAIR = 10
"""What it takes of an effort to intersect two shapes, by their size."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """Some of `null`, or of `true` and `false`."""

    allowed: tuple[bool | None, ...]

    def meet(self, other: Symbols) -> Symbols | None:
        both = tuple(symbol for symbol in self.allowed if symbol in other.allowed)
        return Symbols(both) if both else None

    def without(self, other: Symbols) -> list[Symbols]:
        rest = tuple(symbol for symbol in self.allowed if symbol not in other.allowed)
        return [Symbols(rest)] if rest else []


Possible = Callable[["Shape"], bool]
"""False only where it is certain that a shape has no values."""
Shape = Symbols | Numbers | Strings | Arrays | Objects


def _any(shape: Shape) -> bool:
    return True


def _nothing(expression: Expression) -> bool:
    return expression == NOTHING


class _Meeting(Protocol):
    def meet(self, other: Self) -> Self | None: ...


M = TypeVar("M", bound=_Meeting)


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A union of shapes, all of one type; `reason` says why it is not known, and then nothing else holds."""

    listed: tuple[Shape, ...] = ()
    reason: Reason | None = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Raises Inexact: they are not known."""
        if self.reason is not None:
            raise Inexact.by(self.reason)
        return self.listed

    @property
    def is_empty(self) -> bool:
        return self.reason is None and not self.listed

    def blaming(self, pointer: str) -> Alternatives:
        """The same; a reason that has no pointer yet gets this one."""
        if self.reason is None or self.reason.pointer is not None:
            return self
        return Alternatives(reason=replace(self.reason, pointer=pointer))


EMPTY = Alternatives()
FULL: Mapping[str, Alternatives] = {
    "null": Alternatives((Symbols((None,)),)),
    "boolean": Alternatives((Symbols((True, False)),)),
    "number": Alternatives((Numbers(),)),
    "string": Alternatives((Strings(),)),
    "array": Alternatives((Arrays(),)),
    "object": Alternatives((Objects(),)),
}
"""Everything, type by type."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Alternatives by type; a type that is not there has none."""

    by_type: Mapping[str, Alternatives]

    @classmethod
    def only(cls, kind: str, *shapes: Shape) -> Cases:
        """Values of one type."""
        return cls({kind: Alternatives(tuple(shapes))})

    @classmethod
    def about(cls, kind: str, alternatives: Alternatives) -> Cases:
        """Values of all other types, and these alternatives of one."""
        return cls({**FULL, kind: alternatives})

    def of(self, kind: str) -> Alternatives:
        return self.by_type.get(kind, EMPTY)

    @property
    def is_empty(self) -> bool:
        return all(self.of(kind).is_empty for kind in FULL)

    def meet(self, other: Cases, effort: Effort, possible: Possible = _any) -> Cases:
        """The intersection, without shapes that are not `possible`. `effort` is spent on each pair of alternatives; where none is left,
        nothing is known."""
        if self is EVERYTHING or other is EVERYTHING:
            return other if self is EVERYTHING else self
        return Cases({kind: _met(self.of(kind), other.of(kind), FULL[kind], effort, possible) for kind in FULL})

    def join(self, other: Cases) -> Cases:
        return Cases({kind: _joined(self.of(kind), other.of(kind), FULL[kind]) for kind in FULL})

    def beside(self, other: Cases) -> Cases:
        """The union, where no alternative swallows another: for disjoint ones that differ in what has been evaluated."""
        return Cases({kind: _listed(self.of(kind), other.of(kind)) for kind in FULL})

    def minus(self, other: Cases, effort: Effort, possible: Possible = _any, empty: Empty = _nothing) -> Cases:
        """What is not in the other; `effort` and `possible` as in `meet`."""
        return Cases({kind: _left(self.of(kind), other.of(kind), effort, possible, empty) for kind in FULL})

    def complement(self, effort: Effort) -> Cases:
        """All that is not in it; `effort` as in `meet`."""
        return EVERYTHING.minus(self, effort)

    def filtered(self, keep: Callable[[Shape], bool]) -> Cases:
        """Only the shapes that `keep` holds of."""
        return Cases({kind: Alternatives(tuple(filter(keep, found.listed)), found.reason) for kind, found in self.by_type.items()})

    def blaming(self, pointer: str, keyword: str) -> Cases:
        """The same, where reasons that have no pointer yet get that of a keyword."""
        if all(found.reason is None or found.reason.pointer is not None for found in self.by_type.values()):
            return self
        return Cases({kind: found.blaming(join(pointer, keyword)) for kind, found in self.by_type.items()})


EVERYTHING, NONE = Cases(FULL), Cases({})


def known(make: Callable[[], Alternatives]) -> Alternatives:
    """What `make` returns, or, where it is not exact, the reason for that: not all that is unknown is in the way in the end."""
    try:
        return make()
    except UnsupportedGrammar as error:
        return Alternatives(reason=Reason.of(error))


def _met(left: Alternatives, right: Alternatives, full: Alternatives, effort: Effort, possible: Possible) -> Alternatives:
    if left is full or right is full:
        return right if left is full else left
    if left.is_empty or right.is_empty:
        return EMPTY
    if full in (left, right):
        return right if left == full else left
    return known(lambda: _paired(left.shapes, right.shapes, effort, possible))


def _paired(left: tuple[Shape, ...], right: tuple[Shape, ...], effort: Effort, possible: Possible) -> Alternatives:
    _spend(left, right, effort)
    both = _meets(left, right)
    # Where alternatives multiply, those that contradict themselves must go at once.
    return _bounded(list(filter(possible, both)) if len(left) > 1 < len(right) else both)


def _spend(left: Sequence[Shape], right: Sequence[Shape], effort: Effort) -> None:
    effort.spend(STEPS_A_PAIR * (sum(map(_size, left)) * len(right) + sum(map(_size, right)) * len(left)))


def _meets(left: Sequence[M], right: Sequence[M]) -> list[M]:
    return [both for mine in left for theirs in right if (both := mine.meet(theirs)) is not None]


def _size(shape: Shape) -> int:
    match shape:
        case Objects():
            return 1 + sum(len(asked.parts) + 1 if isinstance(asked, Every) else 1 for _, asked in shape.named)
        case Arrays():
            return 1 + len(shape.prefix)
        case Strings():
            return 1 + len(shape.values or ()) + len(shape.excluded)
    return 1


def _joined(left: Alternatives, right: Alternatives, full: Alternatives) -> Alternatives:
    return full if full in (left, right) else _listed(left, right)


def _listed(left: Alternatives, right: Alternatives) -> Alternatives:
    return known(lambda: _bounded([*left.shapes, *right.shapes]))


def _left(left: Alternatives, right: Alternatives, effort: Effort, possible: Possible, empty: Empty) -> Alternatives:
    if left.is_empty or right.is_empty:
        return left
    if left == right and left.reason is None:
        return EMPTY
    return known(lambda: _subtracted(left.shapes, right.shapes, effort, possible, empty))


def _subtracted(left: tuple[Shape, ...], right: tuple[Shape, ...], effort: Effort, possible: Possible, empty: Empty) -> Alternatives:
    rest = Alternatives(left)
    for other in right:
        _spend(rest.listed, (other,), effort)
        rest = _bounded([part for shape in rest.listed for part in _without(shape, other, effort, possible, empty)])
    return rest


def _without(shape: Shape, other: Shape, effort: Effort, possible: Possible, empty: Empty) -> list[Shape]:
    both = list(filter(possible, _meets([shape], [other])))
    if not both:
        return [shape]
    if both == [shape] or [*map(_unordered, both)] == [_unordered(shape)]:
        return []
    effort.spend(STEPS_A_PAIR * _size(shape) * _size(other))
    return list(filter(possible, _difference(shape, other, empty)))


def _unordered(shape: Shape) -> Shape:
    """In what order members come makes no other values."""
    if not isinstance(shape, Objects):
        return shape
    return replace(shape, named=tuple(sorted(shape.named, key=itemgetter(0))), required=tuple(sorted(shape.required)))


def _difference(shape: Shape, other: Shape, empty: Empty) -> Sequence[Shape]:
    """Of two shapes of one type."""
    match shape, other:
        case Symbols(), Symbols():
            return shape.without(other)
        case Numbers(), Numbers():
            return shape.without(other)
        case Strings(), Strings():
            return shape.without(other)
        case Arrays(), Arrays():
            return shape.without(other, empty)
        case Objects(), Objects():
            return shape.without(other, empty)
    return [shape]


def _bounded(shapes: list[Shape]) -> Alternatives:
    different = tuple(dict.fromkeys(shapes))
    if len(different) > MAX_ALTERNATIVES:
        raise Inexact("the schema has too many cases")
    return Alternatives(different)
