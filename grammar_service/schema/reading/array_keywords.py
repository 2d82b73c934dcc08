"""Keywords about arrays."""

from __future__ import annotations

from grammar_service.schema.algebra.arrays import Arrays, Contained
from grammar_service.schema.algebra.cases import EMPTY, EVERYTHING, Cases
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, Expression, at, negated
from grammar_service.schema.keywords import Schema, list_at
from grammar_service.schema.pointer import join
from grammar_service.schema.reading.scalar_keywords import Assertion, count, one_or_none


def items(schema: Schema, pointer: str, annotated: bool) -> Cases:
    """`prefixItems` and `items`."""
    listed = list_at(schema, "prefixItems")
    prefix = tuple(at(item, join(pointer, "prefixItems", index)) for index, item in enumerate(listed))
    rest = at(schema.get("items", True), join(pointer, "items"))
    seen = (None if "items" in schema else len(listed)) if annotated else 0
    return _arrays(Arrays(prefix, rest, seen=seen).tidy())


def contains(schema: Schema, pointer: str, annotated: bool) -> Cases:
    """`contains` with its two bounds, which say nothing alone."""
    if "contains" not in schema:
        return EVERYTHING
    item = at(schema["contains"], join(pointer, "contains"))
    least = count(schema.get("minContains", 1))
    most = count(schema["maxContains"]) if "maxContains" in schema else None
    if (most is not None and most < least) or (item == NOTHING and least):
        return Cases.about("array", EMPTY)
    if item == NOTHING:
        return EVERYTHING
    return _arrays(_with(item, least, most, annotated))


def _with(item: Expression, least: int, most: int | None, annotated: bool) -> Arrays | None:
    """Arrays with so many items of a kind, which have then been evaluated."""
    if item == ANYTHING:
        return Arrays(least=least, most=most, seen=None if annotated else 0).tidy()
    if most == 0:
        return Arrays(rest=negated(item)).tidy()
    contained = () if least == 0 and most is None else (Contained(item, least, most),)
    return Arrays(contained=contained, seen_items=(item,) if annotated else ())


def _arrays(shape: Arrays | None) -> Cases:
    return Cases.about("array", one_or_none(shape))


ASSERTIONS: dict[str, Assertion] = {
    "minItems": lambda value: _arrays(Arrays(least=count(value))),
    "maxItems": lambda value: _arrays(Arrays(most=count(value)).tidy()),
    "uniqueItems": lambda value: _arrays(Arrays(unique=value is True)),
}
