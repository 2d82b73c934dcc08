"""A tool's schema means the same inside of the schema of all calls as it does alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.constraints.tool_calls.references import with_base
from deployments.constraints.tool_calls.tools import Tool, required_grammar
from grammar_service.spec import STANDARD
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of
from tests.tokenizers.tiny_tokenizer import tiny_tokenizer

INTEGER = {"type": "integer"}
LIST = {"type": "object", "properties": {"next": {"$recursiveRef": "#"}, "x": INTEGER}, "required": ["x"], "additionalProperties": False}
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"$id": "https://a.test/b", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": INTEGER}}, {"x": 1}, {"x": "a"}),
        ({"$schema": DRAFT_07, "$ref": "#/definitions/X", "$id": "https://a.test/b", "definitions": {"X": LIST}}, {"x": 1}, {}),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", **LIST}, {"next": {"x": 1}, "x": 2}, {"next": {}, "x": 2}),
        (LIST, {"next": {"x": 1}, "x": 2}, {"next": [], "x": 2}),
        ({"properties": {"x": {"$dynamicRef": "#/$defs/X"}}, "$defs": {"X": INTEGER}}, {"x": 1}, {"x": "a"}),
        (
            {"properties": {"x": {"const": {"$ref": "#/a"}}, "y": {"$ref": "#/$defs/X"}}, "$defs": {"X": INTEGER}},
            {"x": {"$ref": "#/a"}},
            {"x": {"$ref": "#/$defs/tool0/a"}},
        ),
        (
            {"properties": {"const": {"$ref": "#/$defs/X"}, "$id": INTEGER, "$ref": INTEGER}, "$defs": {"X": INTEGER}},
            {"const": 1, "$id": 1, "$ref": 1},
            {"const": "a"},
        ),
    ],
)
def test_references_of_any_kind_lead_where_they_led(schema: dict[str, Any], right: Any, wrong: Any) -> None:
    asked = {"type": "object", **schema} if "$ref" not in schema else schema
    tools = [Tool("f", asked, True), Tool("g", {"type": "object", "properties": {"z": INTEGER}}, True)]
    grammar = grammar_of(required_grammar(tools, True, STANDARD).spec, GrammarTokenizer.from_huggingface(tiny_tokenizer()))
    for arguments, is_right in ((right, True), (wrong, False)):
        assert accepts(grammar, json.dumps([{"name": "f", "parameters": arguments}])) is is_right


def test_a_recursive_reference_beside_a_plain_one_stays() -> None:
    schema = {"$recursiveRef": "#", "$ref": "#/$defs/X", "allOf": [True], "$defs": {"X": {}}}
    assert with_base(schema, "#/a") == {"$ref": "#/a/$defs/X", "allOf": [True, {"$ref": "#/a"}], "$defs": {"X": {}}}


def test_what_is_no_array_stays_and_is_refused_later() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#", "$ref": "#/x", "allOf": 5}
    assert with_base(schema, "#/a")["allOf"] == 5
