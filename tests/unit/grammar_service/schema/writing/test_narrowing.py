"""What no backend writes of a rewrite is left out, and nothing is added."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grammar_service.schema.writing.narrowing import narrowed
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, schema_spec

INT64 = 2**63
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "narrow"),
    [
        ({"minimum": -INT64, "maximum": INT64 - 1}, {"minimum": 1024 - INT64, "maximum": INT64 - 1024}),
        ({"minimum": 2**53 + 1}, {"minimum": 2**53 + 2}),
        ({"exclusiveMaximum": 2**53 + 1}, {"exclusiveMaximum": 2**53}),
        ({"minimum": -5, "maximum": 7.5}, {"minimum": -5, "maximum": 7.5}),
        ({"minimum": 2**53 + 1, "maximum": 2**53 + 1}, {"minimum": 2**53 + 1, "maximum": 2**53 + 1}),
        ({"minimum": 2**64}, {"minimum": 2**64}),
        ({"minimum": -1.7e308, "maximum": 1e37}, {"minimum": 2048 - INT64, "maximum": INT64 - 2048}),
        ({"minimum": 1e37, "maximum": 1.5}, {"minimum": 1e37, "maximum": 1.5}),
        ({"multipleOf": 2}, {"multipleOf": 2, "minimum": 0}),
        ({"multipleOf": 2, "maximum": 0}, {"multipleOf": 2, "minimum": 0, "maximum": 0}),
        ({"multipleOf": 2, "exclusiveMinimum": -3}, {"multipleOf": 2, "exclusiveMinimum": -3}),
        ({"multipleOf": 2, "exclusiveMaximum": 0}, {"multipleOf": 2, "exclusiveMaximum": 0}),
        ({"multipleOf": 2, "minimum": 3}, {"multipleOf": 2, "minimum": 3}),
    ],
)
def test_bounds_move_inwards_if_at_all(schema: Any, narrow: Any) -> None:
    assert narrowed({"items": {"type": "number", **schema}}) == {"items": {"type": "number", **narrow}}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "integer", "minimum": -INT64, "maximum": INT64 - 1}, [0, -1, 1024 - INT64, INT64 - 1024], [-INT64 - 1, INT64]),
        ({"type": "number", "minimum": -1.79769e308, "maximum": 1.79769e308}, [0, -1.5, 123456.75, -(10**17)], []),
        ({"type": "number", "minimum": 0, "maximum": 1e37}, [0, 0.25, 10**17], [-1, -0.5]),
        ({"multipleOf": 0.01}, [0, 4.02, "a", None], [0.005, 35.001, -0.001]),
        ({"multipleOf": 0.5, "minimum": -2, "maximum": 2}, [-2, -1.5, 0, 2], [-2.5, -0.25, 2.5]),
        ({"multipleOf": 3, "minimum": -1, "maximum": 1}, [0, "a"], [1, -1, 3]),
        (
            {"type": "object", "anyOf": [{"properties": {"a": {"enum": [1, 2]}}}, {}], "properties": {"a": {"not": {"type": "integer"}}}},
            [{}, {"a": 1.5}],
            [{"a": 1}, {"a": 2}],
        ),
        ({"multipleOf": 16, "minimum": -2032, "maximum": 2031}, [-2032, -16, 0, 2016], [-2048, -1, 2032]),
        ({"not": {"type": ["integer", "boolean"]}}, ["a", [], 1.5, -0.25, 15.75], [1, -1, 0, 1.0, -2.0, True]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, -7], [3, 1.5, 2.0, -0.5]),
        (
            {"oneOf": [{"required": ["labels"], "properties": {"labels": LABELS}}, {"required": ["name"]}], "type": "object"},
            [{"labels": {"a": "b"}}, {"name": "a"}, {"name": 1, "size": 1}],
            [{}, {"labels": {}, "name": "a"}, {"labels": {"a": 1}}],
        ),
        ({"type": "integer", "minimum": 0, "maximum": 9, "not": {"multipleOf": 3}}, [1, 2, 8], [0, 3, 6, 9, 10]),
    ],
)
def test_schemas_are_served_by_what_can_be_written(schema: Any, valid: list[Any], invalid: list[Any], tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(replace(schema_spec(schema), closed=False), tokenizer)
    assert [value for value in valid if not accepts(grammar, json.dumps(value))] == []
    assert [value for value in invalid if accepts(grammar, json.dumps(value))] == []
