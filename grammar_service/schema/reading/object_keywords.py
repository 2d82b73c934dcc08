"""Keywords about objects."""

from __future__ import annotations

from collections.abc import Callable

from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.cases import EVERYTHING, FULL, Alternatives, Cases, known
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, at, every
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.objects import Objects, Region, Seen, joined, regions_of
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join
from grammar_service.schema.reading.scalar_keywords import Assertion, count, one_or_none

MAX_PATTERNS = 12
"""`patternProperties` of one schema: n of them may make 2ⁿ kinds of names, of which MAX_REGIONS are followed."""


def members(schema: Schema, pointer: str, annotated: bool, pattern_of: Callable[[str], Pattern]) -> Cases:
    """`properties`, `patternProperties` and `additionalProperties`."""

    def make() -> Alternatives:
        patterns = _map(schema, "patternProperties")
        if len(patterns) > MAX_PATTERNS:
            raise Inexact(f"more than {MAX_PATTERNS} `patternProperties` are not combined")
        sets: list[Region] = [(pattern_of(name).strings, at(value, join(pointer, "patternProperties", name))) for name, value in patterns]
        named = tuple(
            (name, every(at(value, join(pointer, "properties", name)), *(asked for names, asked in sets if name in names)))
            for name, value in _map(schema, "properties")
        )
        rest = at(schema.get("additionalProperties", True), join(pointer, "additionalProperties"))
        seen = _seen(schema, [names for names, _ in sets]) if annotated else Seen()
        return Alternatives((Objects(named, regions_of(sets, rest), seen=seen),))

    return Cases.about("object", known(make))


def _seen(schema: Schema, patterns: list[StringSet]) -> Seen:
    seen = Seen(frozenset(name for name, _ in _map(schema, "properties")))
    if "additionalProperties" in schema:
        return Seen(seen.names, StringSet.everything())
    for names in patterns:
        seen = seen.union(Seen(others=names))
    return seen


def names(allowed: Cases) -> Cases:
    """`propertyNames`: objects with names that are among the strings of `allowed`."""

    def make() -> Alternatives:
        shapes = allowed.of("string").shapes
        listed = [name for shape in shapes if isinstance(shape, Strings) for name in shape.values or ()]
        if all(isinstance(shape, Strings) and shape.values is not None for shape in shapes):
            named = tuple((name, ANYTHING) for name in listed)
            return Alternatives((Objects(named, ((StringSet.everything(), NOTHING),), undeclared=frozenset(listed)),))
        language = StringSet.of_strings(())
        for shape in shapes:
            language = language.union(shape.language()) if isinstance(shape, Strings) else language
        if language.is_empty and any(isinstance(shape, Strings) and not shape.is_exact for shape in shapes):
            raise Inexact("which names are of a format, if any, is not decided here")
        halves: list[Region] = [(language, ANYTHING), (language.complement(), NOTHING)]
        return Alternatives((Objects(regions=joined([(half, asked) for half, asked in halves if not half.is_empty])),))

    return Cases.about("object", FULL["object"] if allowed.of("string") == FULL["string"] else known(make))


def where_present(name: str, asked: Cases, effort: Effort) -> Cases:
    """Objects without the property, those with it that are among `asked`, and all that is no object."""
    absent = Cases.about("object", Alternatives((Objects.naming(name, NOTHING),)))
    present = Cases.only("object", Objects.naming(name, ANYTHING, required=(name,)))
    return absent.join(present.meet(asked, effort)) if asked != EVERYTHING else EVERYTHING


def dependent_required(value: Json, effort: Effort) -> Cases:
    """`dependentRequired`: for each name, objects without it or with the others too."""
    cases = EVERYTHING
    for name, others in value.items() if isinstance(value, dict) else ():
        if others:
            cases = cases.meet(where_present(name, _required(others), effort), effort)
    return cases


def _required(value: Json) -> Cases:
    listed = tuple(str(name) for name in value) if isinstance(value, list) else ()
    return Cases.about("object", one_or_none(Objects(required=listed).tidy()))


def _map(schema: Schema, keyword: str) -> list[tuple[str, Json]]:
    value = schema.get(keyword)
    return list(value.items()) if isinstance(value, dict) else []


def _object(make: Callable[[Json], Objects]) -> Assertion:
    return lambda value: Cases.about("object", Alternatives((make(value),)))


ASSERTIONS: dict[str, Assertion] = {
    "required": _required,
    "minProperties": _object(lambda value: Objects(least=count(value))),
    "maxProperties": _object(lambda value: Objects(most=count(value))),
}
