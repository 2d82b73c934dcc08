"""Keywords about arrays."""

from __future__ import annotations

from collections.abc import Callable

from grammar_service.json_text import Json
from grammar_service.pointer import join
from grammar_service.schema.algebra.arrays import Arrays, Contained
from grammar_service.schema.algebra.cases import EMPTY, EVERYTHING, Alternatives, Cases, known
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, Expression, negated
from grammar_service.schema.algebra.scalar_keywords import Assertion, count
from grammar_service.schema.keywords import Schema


def items(schema: Schema, pointer: str, annotated: bool) -> Cases:
    """`prefixItems` and `items`."""
    first = schema.get("prefixItems")
    length = len(first) if isinstance(first, list) else 0
    prefix = tuple(_at(schema["prefixItems"], join(pointer, "prefixItems", index), index) for index in range(length))
    rest = _at(schema.get("items", True), join(pointer, "items"))
    seen = (None if "items" in schema else length) if annotated else 0
    return _arrays(Arrays(prefix, rest, seen=seen).tidy())


def contains(schema: Schema, pointer: str, annotated: bool) -> Cases:
    """`contains` with its two bounds, which say nothing alone."""
    if "contains" not in schema:
        return EVERYTHING
    if annotated:
        return Cases.about("array", Alternatives(reason="which items `contains` has evaluated is not known"))
    item = _at(schema["contains"], join(pointer, "contains"))
    least = count(schema.get("minContains", 1))
    most = count(schema["maxContains"]) if "maxContains" in schema else None
    if most is not None and most < least:
        return Cases.about("array", EMPTY)
    if item == ANYTHING:
        return _arrays(Arrays(least=least, most=most).tidy())
    if item == NOTHING:
        return EVERYTHING if least == 0 else Cases.about("array", EMPTY)
    if most == 0:
        return _arrays(Arrays(rest=negated(item)).tidy())
    return EVERYTHING if least == 0 and most is None else _arrays(Arrays(contained=(Contained(item, least, most),)))


def _at(schema: Json, pointer: str, index: int | None = None) -> Expression:
    chosen = schema[index] if index is not None and isinstance(schema, list) else schema
    return ANYTHING if chosen is True or chosen == {} else NOTHING if chosen is False else At(pointer)


def _arrays(shape: Arrays | None) -> Cases:
    return Cases.about("array", EMPTY if shape is None else Alternatives((shape,)))


def _array(make: Callable[[Json], Arrays]) -> Assertion:
    return lambda value: Cases.about("array", known(lambda: Alternatives((make(value),))))


ASSERTIONS: dict[str, Assertion] = {
    "minItems": _array(lambda value: Arrays(least=count(value))),
    "maxItems": lambda value: _arrays(Arrays(most=count(value)).tidy()),
    "uniqueItems": _array(lambda value: Arrays(unique=value is True)),
}
