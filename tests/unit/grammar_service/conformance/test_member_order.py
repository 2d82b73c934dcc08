from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar_service.conformance.member_order import MemberOrder

PAIR: dict[str, Any] = {"properties": {"a": {}, "b": {"properties": {"x": {}, "y": {}}}}}


def ordered(schema: Any, value: Any, by_keywords: bool = True) -> str:
    def allowed(part: Any, inner: Any) -> bool:
        return Draft202012Validator(part).is_valid(inner)

    order = MemberOrder(schema, allowed, by_keywords)
    return json.dumps(order.ordered(value))


@pytest.mark.parametrize(
    "schema",
    [
        PAIR,
        {"$ref": "#/$defs/pair", "$defs": {"pair": PAIR}},
        {"allOf": [{"properties": {"a": {}}}, PAIR]},
        {"anyOf": [{"properties": {"b": {"type": "string"}, "a": {}}}, PAIR]},
    ],
)
def test_members_come_in_the_order_of_the_schema_at_every_level(schema: Any) -> None:
    assert ordered(schema, {"z": 1, "b": {"y": 1, "x": 2}, "a": 0}) == '{"a": 0, "b": {"x": 2, "y": 1}, "z": 1}'


def test_items_and_additional_members_are_ordered_too() -> None:
    value = [{"m": {"b": 1, "a": 2}}]
    assert ordered({"items": {"additionalProperties": PAIR}}, value) == '[{"m": {"a": 2, "b": 1}}]'
    assert ordered({"items": [{"patternProperties": {"^m": PAIR}}]}, value) == '[{"m": {"a": 2, "b": 1}}]'


def test_declared_names_come_before_those_that_are_only_required_or_in_conditions() -> None:
    schema = {"required": ["b"], **PAIR}
    assert ordered(schema, {"b": {}, "a": 1}) == '{"a": 1, "b": {}}'
    schema = {"if": {"properties": {"b": {}}}, **PAIR}
    assert ordered(schema, {"b": {}, "a": 1}) == '{"a": 1, "b": {}}'
    schema = {"required": ["c"], **PAIR}
    assert ordered(schema, {"c": 1, "b": {}, "a": 1}) == '{"a": 1, "b": {}, "c": 1}'
    schema = {"additionalProperties": False, "required": ["b"], **PAIR}
    assert ordered(schema, {"b": {}, "a": 1}) == '{"a": 1, "b": {}}'
    schema = {"if": {"required": ["b"]}, **PAIR}
    assert ordered(schema, {"b": {}, "a": 1}, by_keywords=False) == '{"a": 1, "b": {}}'


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"allOf": [{"$ref": "#"}], "$ref": "#/nowhere", "properties": {"a": {"$ref": "#"}, "b": {}}}
    assert ordered(schema, {"b": 1, "a": {"b": 1, "a": 2}}) == '{"a": {"a": 2, "b": 1}, "b": 1}'
