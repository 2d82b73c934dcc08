"""Arrays as schemas, with `contains` spelt out where the arrays are short, else as a sequence, and `uniqueItems` where they are few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, count

from grammar_service.schema.algebra.arrays import Arrays, Contained
from grammar_service.schema.algebra.cases import FULL, Symbols
from grammar_service.schema.algebra.expression import NOTHING, Empty, Expression, every, exactly, negated
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.numbers import Numbers
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json, equality_text
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.writing.sequences import Sequence

MAX_ARRAYS = 64
"""Arrays, or kinds of arrays, that are listed one by one."""
MAX_SPELT = 8
"""The longest arrays of which `contains` is spelt out."""
MAX_CASES = 1500
"""Arrays as which several `contains` are spelt out: half a second for as many."""
MAX_STEPS = 20_000
"""Values that are looked at to list arrays of different items: 20 ms."""
MAX_VALUES = 16
"""Values of one item, of which arrays are listed."""

Inner = Callable[[Expression], Json]


class ArrayWriter:
    """`empty` tells of items that nothing satisfies."""

    def __init__(self, reader: Reader, inner: Inner, empty: Empty) -> None:
        self._reader = reader
        self._inner = inner
        self._empty = empty

    def to_schemas(self, shape: Arrays) -> list[Json]:
        """Schemas whose union is the shape. Raises Inexact."""
        tidy = self._without_impossible(shape)
        if tidy is None:
            return []
        if tidy.contained and (tidy.most is None or tidy.most > MAX_SPELT):
            return self._sequence(tidy)
        try:
            shapes = self._spelt(tidy) if tidy.contained else [tidy]
        except Inexact:
            return self._sequence(tidy)
        return [schema for spelt in shapes for schema in (self._unique(spelt) if spelt.unique else [self._plain(spelt)])]

    def _sequence(self, shape: Arrays) -> list[Json]:
        if shape.unique:
            raise Inexact("`contains` beside `uniqueItems` is not enforced in long arrays")
        sequence, kinds = self._kinds_of(shape, frozenset())
        if not sequence.is_possible:
            return []
        return [{"type": "array", "prefixItems": kinds, "items": False, **sequence.to_keyword()}]

    def _kinds_of(self, shape: Arrays, empty: frozenset[Expression]) -> tuple[Sequence, list[Json]]:
        """The sequence and the schemas of its kinds. Of some it shows only in writing that nothing satisfies them."""
        sequence = Sequence(shape, lambda item: item in empty or self._empty(item))
        kinds = [self._inner(kind) for kind in sequence.kinds]
        if False in kinds:
            found = frozenset(kind for kind, written in zip(sequence.kinds, kinds, strict=True) if written is False)
            return self._kinds_of(shape, empty | found)
        return sequence, [{} if kind is True else kind for kind in kinds]

    def _spelt(self, shape: Arrays) -> list[Arrays]:
        """Without anything contained. Counted after each part, since the cases of several multiply."""
        shapes = [replace(shape, contained=())]
        for part in shape.contained:
            spelt = [case for one in shapes for case in _spelt(one, part)]
            if len(spelt) > MAX_CASES:
                raise Inexact(f"`contains` has more than {MAX_CASES} cases")
            shapes = [tidy for case in dict.fromkeys(spelt) if (tidy := self._without_impossible(case)) is not None]
        return shapes

    def _unique(self, shape: Arrays) -> list[Json]:
        """All of them one by one, or else for a guard."""
        try:
            return self._listed(shape)
        except Inexact:
            plain = self._plain(shape)
            return [{**plain, "uniqueItems": True}] if isinstance(plain, dict) else [plain]

    def _without_impossible(self, shape: Arrays) -> Arrays | None:
        prefix = tuple(NOTHING if self._empty(item) else item for item in shape.prefix)
        rest = NOTHING if self._empty(shape.rest) else shape.rest
        return replace(shape, prefix=prefix, rest=rest).tidy()

    def _plain(self, shape: Arrays) -> Json:
        schema: dict[str, Json] = {"type": "array"}
        if shape.prefix:
            # xgrammar reads no `true` here.
            schema["prefixItems"] = [{} if (inner := self._inner(item)) is True else inner for item in shape.prefix]
        schema["items"] = self._inner(shape.rest)
        if shape.least:
            schema["minItems"] = shape.least
        if shape.most is not None and not (shape.rest == NOTHING and shape.most == len(shape.prefix)):
            schema["maxItems"] = shape.most
        return schema

    def _listed(self, shape: Arrays) -> list[Json]:
        """All arrays of different items, where there are few."""
        arrays: list[list[Json]] = []
        steps = count()
        for length in range(shape.least, self._longest(shape) + 1):
            for items in _distinct(self._places(shape, length), (), frozenset(), steps):
                arrays.append(items)
                if len(arrays) > MAX_ARRAYS:
                    raise Inexact(f"`uniqueItems` leaves more than {MAX_ARRAYS} arrays, too many to list")
        return [self._plain(Arrays(tuple(map(exactly, items)), NOTHING, len(items), len(items))) for items in arrays]

    def _longest(self, shape: Arrays) -> int:
        if shape.most is not None:
            return shape.most
        return len(shape.prefix) + len(self._values(shape.rest))

    def _places(self, shape: Arrays, length: int) -> list[list[tuple[str, Json]]]:
        """The values of each item, with texts that are the same for equal ones."""
        if length > MAX_SPELT:
            raise Inexact(f"`uniqueItems` is enforced only in arrays of at most {MAX_SPELT} items")
        return [[(equality_text(value), value) for value in self._values(shape.item(index))] for index in range(length)]

    def _values(self, item: Expression) -> list[Json]:
        """All values of an item. Raises Inexact: they cannot be listed."""
        values: list[Json] = []
        cases = self._reader.cases(item)
        for kind in FULL:
            for shape in cases.of(kind).shapes:
                values += _values_of(shape)
        if len(values) > MAX_VALUES:
            raise Inexact(f"`uniqueItems` is enforced only for items of at most {MAX_VALUES} values")
        return list({equality_text(value): value for value in values}.values())


def _distinct(
    places: list[list[tuple[str, Json]]], chosen: tuple[Json, ...], taken: frozenset[str], steps: Iterator[int]
) -> Iterator[list[Json]]:
    """All choices of a value at each place, no two of them equal. Raises Inexact: to find them takes more than MAX_STEPS."""
    if len(chosen) == len(places):
        yield list(chosen)
        return
    for text, value in places[len(chosen)]:
        if next(steps) >= MAX_STEPS:
            raise Inexact("`uniqueItems` leaves arrays that take too long to find")
        if text not in taken:
            yield from _distinct(places, (*chosen, value), taken | {text}, steps)


def _values_of(shape: object) -> list[Json]:
    match shape:
        case Symbols(allowed):
            return list(allowed)
        case Strings(values=tuple() as values):
            return list(values)
        case Numbers() if (number := shape.only()) is not None:
            return [number]
    raise Inexact(f"`uniqueItems` is enforced only for items of at most {MAX_VALUES} values, all of them scalars")


def _spelt(shape: Arrays, part: Contained) -> list[Arrays]:
    """Every choice of the items that satisfy `part`, where arrays are short."""
    assert shape.most is not None, "long arrays are sequences"
    found: list[Arrays] = []
    for length in range(max(shape.least, part.least), shape.most + 1):
        most = part.least if part.most is None else min(part.most, length)
        for number in range(part.least, most + 1):
            found += [_chosen(shape, part, length, set(chosen)) for chosen in combinations(range(part.start, length), number)]
        if len(found) > MAX_ARRAYS:
            raise Inexact(f"`contains` has more than {MAX_ARRAYS} cases")
    return found


def _chosen(shape: Arrays, part: Contained, length: int, chosen: set[int]) -> Arrays:
    """Arrays of one length whose `chosen` items satisfy `part`; the others do not, if they may not."""

    def item(index: int) -> Expression:
        if index in chosen:
            return every(shape.item(index), part.item)
        return shape.item(index) if part.most is None or index < part.start else every(shape.item(index), negated(part.item))

    return replace(shape, prefix=tuple(item(index) for index in range(length)), rest=NOTHING, least=length, most=length)
