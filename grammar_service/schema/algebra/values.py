"""Single JSON values as cases."""

from __future__ import annotations

from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import Cases, Symbols
from grammar_service.schema.algebra.expression import NOTHING, exactly
from grammar_service.schema.algebra.numbers import Bound, Numbers
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json


def cases_of_value(value: Json) -> Cases:
    """The value, and all that JSON Schema calls equal to it."""
    match value:
        case None:
            return Cases.only("null", Symbols((None,)))
        case bool():
            return Cases.only("boolean", Symbols((value,)))
        case int() | float():
            return Cases.only("number", Numbers(Bound(value, False), Bound(value, False)))
        case str():
            return Cases.only("string", Strings(values=(value,)))
        case list():
            items = tuple(exactly(item) for item in value)
            return Cases.only("array", Arrays(items, NOTHING, len(items), len(items)))
        case dict():
            named = tuple((name, exactly(member)) for name, member in value.items())
            return Cases.only("object", Objects(named, ((StringSet.everything(), NOTHING),), tuple(value), undeclared=frozenset(value)))
