from __future__ import annotations

from typing import Any

import pytest

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.json_schema import schema_of

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, ""),
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, ""),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, ""),
        ({"type": "array", "prefixItems": [{"type": "null"}, {"$ref": "#"}], "minItems": 2}, ""),
        ({"$defs": {"node": NODE}, "anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, "/$defs/node"),
        ({"$defs": {"node": {"allOf": [NODE, {}]}}}, "/$defs/node"),
        ({"$defs": {"node": {"oneOf": [NODE, {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 2}]}}}, "/$defs/node"),
    ],
)
def test_what_never_ends_is_refused(schema: Any, pointer: str) -> None:
    with pytest.raises(InvalidGrammar, match="ends") as caught:
        schema_of(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}, "prefixItems": [{"type": "null"}], "minItems": 1},
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}]},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
    ],
)
def test_recursion_that_can_end_is_fine(schema: Any) -> None:
    assert schema_of(schema).normal


def test_an_open_schema_without_a_type_has_values_of_other_types() -> None:
    schema: Any = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert schema_of(schema, closed=False)
