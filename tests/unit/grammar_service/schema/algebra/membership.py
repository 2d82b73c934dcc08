"""Random sets of values, random values, and which values are in a set: told by the definition of each shape, without its operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st

from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.arrays import Arrays, Contained
from grammar_service.schema.algebra.cases import Shape, Symbols
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, Every, Exactly, Expression, Negated, every, exactly, negated
from grammar_service.schema.algebra.numbers import Bound, Numbers
from grammar_service.schema.algebra.objects import EVERY_NAME, Objects, regions_of
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json, equality_text, text_of
from grammar_service.schema.normal_form.disjoint import type_of

quick = settings(max_examples=40)

SCALARS: list[Json] = [None, True, False, -1, 0, 1, 1.5, 2, 3, "", "a", "b", "ab", "bba"]
NAMES = ["a", "b", "ab"]
PATTERNS = ["^a", "b$", "^(a|b){2}$", "ba", ""]
SCHEMAS: dict[str, Callable[[Json], bool]] = {
    "/string": lambda value: isinstance(value, str),
    "/number": lambda value: type_of(value) == "number",
    "/short": lambda value: not isinstance(value, str) or len(value) < 2,
}
"""What stands at each pointer."""

scalars = st.sampled_from(SCALARS)
values: st.SearchStrategy[Json] = st.one_of(
    scalars, st.lists(scalars, max_size=3), st.dictionaries(st.sampled_from([*NAMES, "c"]), scalars, max_size=3)
)
_schemas: st.SearchStrategy[Expression] = st.sampled_from(sorted(SCHEMAS)).map(At)
_combined: st.SearchStrategy[Expression] = st.one_of(_schemas, _schemas.map(negated), st.builds(every, _schemas, _schemas.map(negated)))
expressions = st.one_of(st.sampled_from([ANYTHING, NOTHING]), _combined, scalars.map(exactly))
_least, _most = st.integers(0, 2), st.none() | st.integers(0, 3)

symbols: st.SearchStrategy[Symbols] = st.sampled_from([(None,), (True,), (False,), (True, False)]).map(Symbols)
_bounds = st.none() | st.builds(Bound, st.sampled_from([-1, 0, 1, 1.5, 2, 2.5]), st.booleans())
bounded_numbers = st.builds(Numbers, _bounds, _bounds)
_steps = st.sampled_from([None, Fraction(1), Fraction(1, 2), Fraction(3, 2), Fraction(3)])
_avoided = st.sampled_from([(), (), (Fraction(1),), (Fraction(3, 2),), (Fraction(1), Fraction(3, 2)), (Fraction(2), Fraction(3))])
numbers = st.builds(Numbers, _bounds, _bounds, st.booleans(), _steps, _avoided)
_patterns = st.lists(st.sampled_from(PATTERNS), max_size=2, unique=True).map(
    lambda texts: tuple(Pattern(text, Effort(100_000)) for text in texts)
)
_texts = st.lists(st.sampled_from([text for text in SCALARS if isinstance(text, str)]), max_size=3, unique=True).map(tuple)
strings = st.one_of(
    st.builds(Strings, _least, _most, _patterns, _patterns, excluded=_texts),
    _texts.filter(bool).map(lambda texts: Strings(values=texts)),
)
_contained = st.builds(Contained, _combined, st.integers(1, 2), st.none() | st.integers(2, 3), st.integers(0, 2))
arrays = st.builds(
    Arrays,
    st.lists(expressions, max_size=2).map(tuple),
    expressions,
    _least,
    _most,
    st.lists(_contained, max_size=1).map(tuple),
    st.sampled_from([False, False, True]),
)
described_arrays = st.builds(replace, arrays, unique=st.just(False)).map(lambda shape: shape.tidy() or Arrays())
"""Those whose complement can be described."""
_regions = st.builds(
    lambda texts, asked, rest: regions_of([(StringSet.of_pattern(text), asked) for text in texts], rest),
    st.lists(st.sampled_from(PATTERNS), max_size=2),
    expressions,
    expressions,
)
objects = st.builds(
    Objects,
    st.dictionaries(st.sampled_from(NAMES), expressions, max_size=2).map(lambda named: tuple(named.items())),
    _regions,
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    _least,
    _most,
)

described_objects = st.builds(replace, objects, regions=st.sampled_from([EVERY_NAME, ((StringSet.everything(), NOTHING),)]))
"""Those whose complement can be described."""


def satisfies(value: Json, expression: Expression) -> bool:
    match expression:
        case At(pointer):
            return SCHEMAS[pointer](value)
        case Every(parts):
            return all(satisfies(value, part) for part in parts)
        case Negated(inner):
            return not satisfies(value, inner)
        case Exactly(text):
            return text_of(value) == text


def is_empty(expression: Expression) -> bool:
    """Of the schemas above two have no value in common."""
    parts = expression.parts if isinstance(expression, Every) else (expression,)
    return NOTHING in parts or {At("/string"), At("/number")} <= {*parts}


def is_in(value: Json, shape: Shape | None) -> bool:
    match shape:
        case None:
            return False
        case Symbols(allowed):
            return any(value is symbol for symbol in allowed)
        case Numbers():
            return isinstance(value, int | float) and not isinstance(value, bool) and shape.holds(value)
        case Strings():
            return isinstance(value, str) and _is_text_in(value, shape)
        case Arrays():
            return isinstance(value, list) and _is_array_in(value, shape)
        case Objects():
            return isinstance(value, dict) and _is_object_in(value, shape)


def is_in_any(value: Json, shapes: list[Shape]) -> bool:
    return any(is_in(value, shape) for shape in shapes)


def _is_text_in(text: str, shape: Strings) -> bool:
    return (
        _is_between(len(text), shape.least, shape.most)
        and all(re.search(pattern.text, text) for pattern in shape.patterns)
        and not any(re.search(pattern.text, text) for pattern in shape.avoided)
        and (shape.values is None or text in shape.values)
        and text not in shape.excluded
    )


def _is_array_in(items: list[Json], shape: Arrays) -> bool:
    counts = [(sum(satisfies(item, part.item) for item in items[part.start :]), part) for part in shape.contained]
    return (
        _is_between(len(items), shape.least, shape.most)
        and all(satisfies(item, shape.item(index)) for index, item in enumerate(items))
        and all(_is_between(count, part.least, part.most) for count, part in counts)
        and (not shape.unique or len(set(map(equality_text, items))) == len(items))
    )


def _is_object_in(members: dict[str, Json], shape: Objects) -> bool:
    named = dict(shape.named)
    asked = {name: named[name] if name in named else _asked_of(name, shape) for name in members}
    return (
        _is_between(len(members), shape.least, shape.most)
        and members.keys() >= set(shape.required)
        and all(satisfies(member, asked[name]) for name, member in members.items())
    )


def _asked_of(name: str, shape: Objects) -> Expression:
    [asked] = [expression for names, expression in shape.regions if name in names]
    return asked


def _is_between(count: int, least: int, most: int | None) -> bool:
    return least <= count and (most is None or count <= most)
