"""Members come in the order in which `properties` declare them, wherever `required` stands, and behind them what is only required."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.schema.json_schema import parse_schema
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of
from tests.tokenizers.tiny_tokenizer import tiny_tokenizer

TEXT = {"type": "string"}
DECLARED = {"admin": {"type": "boolean"}, "email": TEXT, "id": TEXT}
SCHEMAS: dict[str, tuple[dict[str, Any], list[list[str]]]] = {
    "required first": ({"required": ["id", "email"], "properties": DECLARED}, [["admin", "email", "id"]]),
    "required alone": ({"required": ["z", "id"], "properties": DECLARED}, [["admin", "email", "id", "z"]]),
    "required in a part": ({"allOf": [{"required": ["id"]}, {"properties": DECLARED}]}, [["admin", "email", "id"]]),
    "required in branches": (
        {"anyOf": [{"required": ["id"]}, {"required": ["email"]}], "properties": DECLARED},
        [["admin", "email", "id"], ["admin", "email", "id"]],
    ),
    "dependent": (
        {"dependentRequired": {"id": ["admin"]}, "properties": DECLARED},
        [["admin", "email", "id"], ["admin", "email", "id"]],
    ),
    "a condition first": (
        {"dependentSchemas": {"id": {"properties": {"email": {"minLength": 1}}, "required": ["email"]}}, "properties": DECLARED},
        [["admin", "email", "id"], ["admin", "email", "id"]],
    ),
    "two declare": ({"required": ["id"], "allOf": [{"properties": {"x": TEXT}}], "properties": DECLARED}, [["x", "admin", "email", "id"]]),
    "names": ({"propertyNames": {"enum": ["id", "z", "admin"]}, "properties": DECLARED}, [["admin", "id", "z"]]),
    "counted": (
        {"minProperties": 2, "required": ["id"], "properties": DECLARED, "additionalProperties": False},
        [["admin", "email", "id"], ["admin", "email", "id"]],
    ),
}


def orders(schema: Any) -> list[list[str]]:
    if isinstance(schema, dict) and "properties" in schema:
        return [list(schema["properties"])]
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return [order for part in parts for order in orders(part)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_rewrite_keeps_to_it(name: str) -> None:
    schema, expected = SCHEMAS[name]
    rewritten = parse_schema(json.dumps({"type": "object", **schema}), closed=False)._rewrite
    assert orders(rewritten) == expected


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("whitespace", ["standard", "compact"])
def test_so_does_a_grammar(closed: bool, whitespace: str) -> None:
    """Each kind of whitespace has its backend."""
    schema = {"type": "object", "required": ["id", "email"], "additionalProperties": False, "properties": DECLARED}
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace, closed)
    grammar = grammar_of(spec, GrammarTokenizer.from_huggingface(tiny_tokenizer()))
    separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    for members, is_allowed in (
        ({"admin": True, "email": "a", "id": "b"}, True),
        ({"email": "a", "id": "b"}, True),
        ({"id": "b", "email": "a"}, False),
    ):
        assert accepts(grammar, json.dumps(members, separators=separators)) is is_allowed
