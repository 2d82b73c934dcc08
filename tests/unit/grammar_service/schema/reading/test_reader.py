"""Every keyword that a normal form may have is read."""

from __future__ import annotations

import pytest

from grammar_service.schema.algebra.cases import EMPTY, EVERYTHING
from grammar_service.schema.algebra.expression import At, exactly
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.numbers import Bound, Numbers
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import BY_TYPE, IDENTIFIERS, KNOWN, Schema, walk
from grammar_service.schema.reading.document import MAX_READING_DEPTH, MAX_READINGS, Document
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.reading.scalar_keywords import one_or_none

VALUES: dict[str, Json] = {
    **dict.fromkeys(KNOWN - IDENTIFIERS, 1),
    **{key: [True] for key in ("allOf", "anyOf", "oneOf", "prefixItems")},
    **{key: {"a": True} for key in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")},
    **dict.fromkeys(("if", "then", "else", "not", "items", "contains", "propertyNames", "additionalProperties"), True),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), True),
    "pattern": "a",
    "format": "date",
    "$ref": "#/$defs/a",
    "type": "string",
    "enum": [1],
    "required": ["a"],
    "dependentRequired": {"a": ["b"]},
    "uniqueItems": True,
}


def reader_of(schema: Json) -> Reader:
    return Reader(Document(dict(walk(schema))))


@pytest.mark.parametrize("keyword", sorted(VALUES))
def test_no_keyword_is_unknown(keyword: str) -> None:
    schema: Schema = {keyword: VALUES[keyword], "$defs": {"a": True}}
    cases = reader_of(schema).cases(At(""))
    kind = next((kind for kind, keywords in BY_TYPE.items() if keyword in keywords), None)
    assert [name for name in EVERYTHING.by_type if kind and name != kind and cases.of(name) != EVERYTHING.of(name)] == []


def test_both_readers_share_what_a_document_may_cost() -> None:
    reader = reader_of(True)
    assert reader.annotated.plain is reader
    assert reader.annotated.annotated is reader.annotated
    for number in range(MAX_READINGS):
        (reader if number % 2 else reader.annotated).cases(exactly(number))
    with pytest.raises(Inexact, match="too many combinations"):
        reader.cases(exactly(-1))


def test_reading_ends_where_it_is_too_deep() -> None:
    schema: Json = True
    for _ in range(MAX_READING_DEPTH):
        schema = {"not": schema}
    with pytest.raises(Inexact, match="too many combinations"):
        reader_of(schema).cases(At(""))


def test_bounds_that_leave_nothing_leave_nothing() -> None:
    assert one_or_none(Numbers(Bound(2, False), Bound(1, False)).tidy()) == EMPTY
