"""Answers judged by the `jsonschema` library, in the dialect that the schema names."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grammar_service.errors import UnsupportedGrammar
from grammar_service.relaxation.judging import check_judgeable, judged
from tests.driving import schema_spec


@pytest.mark.parametrize(
    ("schema", "right", "wrong", "place"),
    [
        ({"uniqueItems": True}, "[1, 2]", "[1, 1]", "has non-unique elements"),
        ({"uniqueItems": True}, '[1, true, "1", {"a": 1, "b": []}]', '[{"a": 1, "b": []}, {"b": [], "a": 1.0}]', "has non-unique elements"),
        ({"items": {"multipleOf": 0.01}}, "[19.99, 0.29, 4.35, 1e22, 7]", "[19.99, 0.295]", "/1: 0.295 is not a multiple"),
        ({"multipleOf": 0.1}, "true", "0.25", "is not a multiple of 0.1"),
        ({"properties": {"a": {"pattern": "^(.)\\1$"}}}, '{"a": "xx"}', '{"a": "xy"}', "/a: "),
        ({"format": "uuid"}, '"12345678-1234-1234-1234-123456789012"', '"x"', "is not a 'uuid'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}, "2", "3", "3"),
        ({"dependencies": {"a": ["b"]}}, '{"a": 1, "b": 1}', '{"a": 1}', "'b'"),
        ({"type": "array"}, "[]", "[", "not JSON"),
        ({"type": "object"}, '{"a": 1, "b": {"a": 1}}', '{"a": 1, "a": 1}', "twice"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(schema: Any, right: str, wrong: str, place: str) -> None:
    first, second = judged(schema_spec(schema), [right, wrong])
    assert first is None
    assert second is not None
    assert place in second


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"pattern": "^\\p{Lu}$"}, "É", "é"),
        ({"pattern": "^a$"}, "a", "a\n"),
        ({"pattern": "^(.)\\1$"}, "aa", "aa\n"),
        ({"pattern": "^\\d$"}, "1", "\u0661"),
        ({"patternProperties": {"^\\p{L}$": {"type": "integer"}}}, {"é": 1, "1": "a"}, {"é": "a"}),
        ({"patternProperties": {"^\\p{L}$": True}, "properties": {"1": True}, "additionalProperties": False}, {"é": 1, "1": 1}, {"2": 1}),
        ({"patternProperties": {"(a)": True, "(b)\\1": True}, "additionalProperties": False}, {"bb": 1}, {"b": 1}),
        ({"format": "email"}, "a@b.test", "@"),
        ({"format": "date-time"}, "2020-01-01T00:00:00Z", "2020-01-01"),
        ({"format": "iri"}, "http://é.test/", "é"),
        ({"format": "unheard of"}, "a", None),
    ],
)
def test_patterns_and_formats_mean_what_they_mean_in_a_grammar(schema: Any, right: Any, wrong: Any) -> None:
    whole = {"items": schema, "type": "array"}
    check_judgeable(schema_spec(whole))
    first, second = judged(schema_spec(whole), [json.dumps([right]), json.dumps([right, wrong])])
    assert first is None
    assert (second is not None) == (wrong is not None)


def test_patterns_behind_a_reference_to_the_root_mean_the_same() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^\\p{L}$", "items": {"$ref": "#"}}
    first, second = judged(schema_spec(schema), ['["é"]', '["1"]'])
    assert first is None
    assert second is not None


@pytest.mark.parametrize("name", ["(?<n>a)\\k<n>", "\\p{Unheard}"])
def test_a_pattern_that_nobody_knows_is_refused(name: str) -> None:
    for schema in ({"pattern": name}, {"patternProperties": {name: True}}):
        with pytest.raises(UnsupportedGrammar, match="cannot be checked"):
            check_judgeable(schema_spec(schema))


def test_a_format_that_annotates_is_not_judged() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "uuid"}
    assert judged(replace(schema_spec(schema), formats=False), ['"x"']) == [None]


def test_many_items_are_compared_in_time() -> None:
    items = json.dumps([{"a": number, "b": [number]} for number in range(20_000)])
    assert judged(schema_spec({"uniqueItems": True}), [items]) == [None]
