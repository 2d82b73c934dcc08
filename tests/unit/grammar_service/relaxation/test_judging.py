"""Answers judged by the `jsonschema` library, in the dialect that the schema names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grammar_service.errors import UnsupportedGrammar
from grammar_service.relaxation.judging import check_judgeable, judged, unjudged_formats
from tests.driving import schema_spec


@pytest.mark.parametrize(
    ("schema", "right", "wrong", "place"),
    [
        ({"uniqueItems": True}, "[1, 2]", "[1, 1]", "has non-unique elements"),
        ({"properties": {"a": {"pattern": "^(.)\\1$"}}}, '{"a": "xx"}', '{"a": "xy"}', "/a: "),
        ({"format": "uuid"}, '"12345678-1234-1234-1234-123456789012"', '"x"', "is not a 'uuid'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}, "2", "3", "3"),
        ({"dependencies": {"a": ["b"]}}, '{"a": 1, "b": 1}', '{"a": 1}', "'b'"),
        ({"type": "array"}, "[]", "[", "not JSON"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(schema: Any, right: str, wrong: str, place: str) -> None:
    first, second = judged(schema_spec(schema), [right, wrong])
    assert first is None
    assert second is not None
    assert place in second


@pytest.mark.parametrize("schema", [{"pattern": "\\p{L}"}, {"patternProperties": {"\\p{L}": True}}])
def test_a_schema_that_the_library_does_not_take_is_refused(schema: Any) -> None:
    with pytest.raises(UnsupportedGrammar, match="cannot be checked"):
        check_judgeable(schema_spec(schema))


def test_formats_that_the_library_lets_pass_are_told() -> None:
    schema: Any = {"properties": {"a": {"format": "date"}, "b": {"format": "iri"}, "c": {"format": "unheard of"}}}
    assert list(unjudged_formats(schema)) == [("/properties/b/format", "iri")]


def test_a_format_that_annotates_is_not_judged() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "uuid"}
    assert judged(replace(schema_spec(schema), formats=False), ['"x"']) == [None]
