"""Objects as schemas, with counts of properties spelt out where names are few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import comb

from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.string_set_regex import anchored_pattern
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.algebra.expression import NOTHING, Empty, Expression
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.objects import Named, Objects
from grammar_service.schema.json_text import Json

MAX_OBJECTS = 64
"""Choices of properties that are listed one by one: of six that may be left out, each. Such a grammar of 12 names compiles in 60 ms."""

_TOO_MANY = f"`minProperties` and `maxProperties` are not enforced where they leave more than {MAX_OBJECTS} choices of names"

Inner = Callable[[Expression], Json]


class ObjectWriter:
    """`inner` writes the schema of a member. `empty`: no value satisfies the member. `unwritable`: a narrower rewrite forbids the member
    where it is optional. `forbidden`: the names of those members, of all shapes."""

    def __init__(self, inner: Inner, empty: Empty, unwritable: Callable[[Expression], bool]) -> None:
        self._inner = inner
        self._empty = empty
        self._unwritable = unwritable
        self.forbidden = set[str]()

    def to_schemas(self, shape: Objects) -> list[Json]:
        """Schemas whose union is the shape. Raises Inexact."""
        tidy = self._without_impossible(shape)
        if tidy is None:
            return []
        return [self._plain(fewer) for enough in _with_enough(tidy) for fewer in _with_few(enough)]

    def _without_impossible(self, shape: Objects) -> Objects | None:
        named = tuple((name, NOTHING if self._empty(asked) else asked) for name, asked in shape.named)
        regions = tuple((names, NOTHING if self._empty(asked) else asked) for names, asked in shape.regions)
        return replace(shape, named=named, regions=regions).tidy()

    def _plain(self, shape: Objects) -> Json:
        schema: dict[str, Json] = {"type": "object"}
        if properties := self._properties(shape):
            schema["properties"] = properties
        if shape.required:
            schema["required"] = list(shape.required)
        if len(shape.regions) == 1:
            schema["additionalProperties"] = self._inner(shape.regions[0][1])
        else:
            regions = [(_without_names(names, shape.named), asked) for names, asked in shape.regions if asked != NOTHING]
            schema["patternProperties"] = {anchored_pattern(names): self._inner(asked) for names, asked in regions if not names.is_empty}
            schema["additionalProperties"] = False
        if shape.least:
            schema["minProperties"] = shape.least
        if shape.most is not None and (_is_open(shape) or len(_optional(shape)) + len(shape.required) > shape.most):
            schema["maxProperties"] = shape.most
        return schema

    def _properties(self, shape: Objects) -> dict[str, Json]:
        """Without the names that must not come and could not come otherwise."""
        rest = replace(shape, named=())
        found: dict[str, Json] = {}
        for name, asked in shape.named:
            is_forbidden = name not in shape.required and self._unwritable(asked)
            if is_forbidden:
                self.forbidden.add(name)
            if (asked != NOTHING and not is_forbidden) or rest.asked_of(name) != NOTHING:
                found[name] = False if is_forbidden else self._inner(asked)
        return found


def _without_names(names: StringSet, named: Named) -> StringSet:
    return names.intersection(StringSet.of_strings(name for name, _ in named if name in names).complement())


def _optional(shape: Objects) -> list[str]:
    return [name for name, asked in shape.named if asked != NOTHING and name not in shape.required]


def _is_open(shape: Objects) -> bool:
    return any(asked != NOTHING for _, asked in shape.regions)


def _with_enough(shape: Objects) -> list[Objects]:
    """The shape as a union of shapes that need no count from below, or one more property than they require, of any name, or that have no
    optional names, and always one more of others: a guard keeps them from coming twice, so that they can be counted."""
    missing = shape.least - len(shape.required)
    if missing <= 0:
        return [replace(shape, least=0)]
    optional = _optional(shape)
    if _is_open(shape) and missing > 1:
        return _with_each_choice(shape, optional)
    chosen = _bounded([replace(shape, required=(*shape.required, *names), least=0) for names in _choices(optional, missing)])
    return [*chosen, _without(shape, optional)] if _is_open(shape) else chosen


def _with_each_choice(shape: Objects, optional: list[str]) -> list[Objects]:
    if not all(never_runs_out(names) for names, asked in shape.regions if asked != NOTHING):
        raise Inexact("`minProperties` is enforced only for names that are known, or do not run out, and one more")
    found: list[Objects] = []
    for count in range(len(optional) + 1):
        for names in _choices(optional, count):
            required = (*shape.required, *names)
            rest = _without(shape, [name for name in optional if name not in names])
            found.append(replace(rest, required=required, least=shape.least if shape.least > len(required) else 0))
        _bounded(found)
    return found


def _with_few(shape: Objects) -> list[Objects]:
    """The shape as a union of shapes that need no count from above, or have no optional names."""
    optional = _optional(shape)
    if shape.most is None or not optional or (not _is_open(shape) and len(optional) + len(shape.required) <= shape.most):
        return [shape]
    found: list[Objects] = []
    for count in range(min(len(optional), shape.most - len(shape.required)) + 1):
        for names in _choices(optional, count):
            rest = [name for name in optional if name not in names]
            found.append(replace(_without(shape, rest), required=(*shape.required, *names)))
        _bounded(found)
    return found


def _without(shape: Objects, names: list[str]) -> Objects:
    return replace(shape, named=tuple((name, NOTHING if name in names else asked) for name, asked in shape.named))


def _choices(names: list[str], count: int) -> Iterator[tuple[str, ...]]:
    """So many of the names. Raises Inexact before there are too many choices."""
    if comb(len(names), count) > MAX_OBJECTS:
        raise Inexact(_TOO_MANY)
    return combinations(names, count)


def _bounded(shapes: list[Objects]) -> list[Objects]:
    if len(shapes) > MAX_OBJECTS:
        raise Inexact(_TOO_MANY)
    return shapes
