"""What is refused before any compiler runs, and with which JSON pointer."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from grammar_service.backends import select_backend
from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, NothingMatches, UnsupportedGrammar
from grammar_service.schema.json_schema import parse_schema, schema_of
from grammar_service.schema.json_text import Json
from tests.driving import schema_spec


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "items": "x"}, "/items"),
        ({"type": "text"}, "/type"),
        ({"type": []}, "/type"),
        ({"properties": {"a": 1}}, "/properties/a"),
        ({"properties": {"a/b": {"type": 1}}}, "/properties/a~1b/type"),
        ({"required": "a"}, "/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"minLength": -1}, "/minLength"),
        ({"minLength": 1.5}, "/minLength"),
        ({"minimum": "1"}, "/minimum"),
        ({"minimum": True}, "/minimum"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"pattern": 1}, "/pattern"),
        ({"enum": {}}, "/enum"),
        ({"anyOf": []}, "/anyOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"allOf": [{"type": "x"}]}, "/allOf/0/type"),
        ({"$defs": {"a": []}}, "/$defs/a"),
        ({"$ref": 1}, "/$ref"),
        ({"uniqueItems": 1}, "/uniqueItems"),
        ({"additionalProperties": "no"}, "/additionalProperties"),
    ],
)
def test_what_is_no_schema_is_invalid_at_its_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError):
        Draft202012Validator.check_schema(schema)
    with pytest.raises(InvalidGrammar) as caught:
        schema_of(schema)
    assert caught.value.pointer == pointer


def test_a_type_that_is_none_is_named() -> None:
    with pytest.raises(InvalidGrammar, match="'strng' is none"):
        schema_of({"type": ["null", "strng"]})


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "#/$defs/none"}, "/$ref"),
        ({"$ref": "#"}, None),
        ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, None),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, None),
        ({"type": "integer", "const": "a"}, "/const"),
        ({"type": "integer", "enum": ["a", 1.5]}, "/enum"),
        ({"minLength": 3, "maxLength": 2}, "/minLength"),
        (False, ""),
    ],
)
def test_what_matches_nothing_or_leads_nowhere_is_invalid(schema: Any, pointer: str | None) -> None:
    with pytest.raises(InvalidGrammar) as caught:
        schema_of(schema)
    assert pointer is None or caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "https://example.com/schema"}, "/$ref"),
        ({"$ref": "other.json#/a"}, "/$ref"),
        ({"$ref": "#anchor"}, "/$ref"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "/properties/a/$ref"),
        ({"$dynamicRef": "#a"}, "/$dynamicRef"),
        ({"properties": {"a": {"$ref": "b.json"}}, "$id": "https://example.com/a.json"}, "/properties/a/$ref"),
        (
            {"$defs": {"a": {"$id": "a", "$dynamicAnchor": "x"}, "b": {"$id": "b", "$dynamicAnchor": "x", "$dynamicRef": "#x"}}},
            "/$defs/b/$dynamicRef",
        ),
        ({"divisibleBy": 2}, "/divisibleBy"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "/$schema"),
        ({"properties": {"a": {"not": {"multipleOf": 3}}}}, "/properties/a/not"),
        ({"if": {"multipleOf": 2}, "else": {"minimum": 3}}, "/else"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "number", "minimum": 3}}, "/uniqueItems"),
        ({"type": "array", "contains": {"type": "null"}, "maxContains": 300, "minContains": 300}, "/contains"),
        ({"type": "object", "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(30)}}, "/dependentRequired"),
        ({"type": "object", "propertyNames": {"format": "email", "pattern": "a"}}, "/propertyNames"),
        ({"type": "object", "minProperties": 2, "patternProperties": {"^[ab]$": {}}}, "/minProperties"),
        ({"oneOf": [{"type": "number", "multipleOf": 5}, {"type": "number", "minimum": 2}]}, "/oneOf"),
        ({"type": "number", "multipleOf": 0.5, "minimum": -300}, "/multipleOf"),
        ({"type": "string", "pattern": "(?=a)b"}, "/pattern"),
        ({"type": "string", "pattern": r"(a)\1"}, "/pattern"),
        ({"type": "string", "not": {"format": "regex"}}, "/not"),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "number", "minimum": 3}, "uniqueItems": True}},
            "/items/uniqueItems",
        ),
    ],
)
def test_what_nobody_enforces_is_refused_at_its_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedGrammar) as caught:
        select_backend(schema_spec(schema))
    assert caught.value.pointer is not None
    assert caught.value.pointer.startswith(pointer)


@pytest.mark.parametrize(
    ("schema", "backend"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "xgrammar"),
        ({"type": "object", "properties": {"not": {"type": "string"}, "$ref": {"type": "null"}}}, "xgrammar"),
        ({"const": {"not": 1, "$ref": "x"}}, "xgrammar"),
        ({"default": {"$ref": "x"}, "type": "null"}, "xgrammar"),
        ({"type": "string", "enum": ["a", 1]}, "xgrammar"),
        ({"type": "string", "x-order": 3, "deprecated": True}, "xgrammar"),
        ({"type": "string", "pattern": "^a"}, "llguidance"),
        ({"type": "string", "format": "date"}, "llguidance"),
        ({"type": "string", "minLength": 1, "maxLength": 3}, "xgrammar"),
        ({"type": "object", "required": ["a"]}, "xgrammar"),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "xgrammar"),
        ({"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "minimum": 3}, "xgrammar"),
        ({"allOf": [{"type": "string"}, {"pattern": "^a"}]}, "llguidance"),
        ({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True}, "llguidance"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "xgrammar"),
        ({"enum": list(range(2000))}, "llguidance"),
        ({"type": "integer", "multipleOf": 5}, "llguidance"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "xgrammar"),
        (True, "xgrammar"),
    ],
)
def test_the_first_backend_that_enforces_all_is_chosen(schema: Any, backend: str) -> None:
    assert select_backend(schema_spec(schema)).name == backend


def test_indented_output_with_a_pattern_is_refused_at_the_pattern() -> None:
    with pytest.raises(UnsupportedGrammar) as caught:
        select_backend(schema_spec({"type": "object", "properties": {"a": {"type": "string", "pattern": "b"}}}, "indent:2"))
    assert caught.value.pointer == "/properties/a/pattern"
    assert "indented" in caught.value.message


def test_a_rewrite_is_not_tried_where_patterns_alone_are_in_the_way() -> None:
    schema = {"$defs": {"unused": {"type": "string", "pattern": "^a"}}, "type": "integer"}
    assert select_backend(schema_spec(schema)).name == "llguidance"
    # No other backend writes indented JSON, so that the rewrite, which does without the definition, is worth its time.
    assert select_backend(schema_spec(schema, "indent:2")).name == "xgrammar"


def test_values_that_differ_in_type_only_are_different_values() -> None:
    assert parse_schema(json.dumps({"enum": ["1", 1, True, None, "null", [1], "[1]"]}))
    with pytest.raises(InvalidGrammar, match="different values"):
        parse_schema(json.dumps({"enum": [1, "x", 1.0]}))


def test_options_hidden_in_the_schema_do_not_reach_a_backend() -> None:
    schema = schema_of({"type": "integer", "x-guidance": {"lenient": True}, "title": "T", "$schema": "s"})
    assert schema.normal == {"type": "integer"}


def test_objects_are_closed_unless_the_schema_says_otherwise_or_composes() -> None:
    properties: Json = {"a": {"type": "null"}}
    assert schema_of({"properties": properties}).normal == {"type": "object", "properties": properties, "additionalProperties": False}
    assert schema_of({"type": "object"}).normal == {"type": "object"}
    opened: Json = {"type": "object", "properties": properties, "additionalProperties": True}
    assert schema_of(opened).normal == opened
    composed: Json = {"allOf": [{"type": "object", "properties": properties}, {"type": "object", "required": ["b"]}]}
    assert schema_of(composed).normal == composed


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"anyOf": [{"type": "object", "properties": {f"p{index}": {"type": "string"}}} for index in range(10_000)]}),
        json.dumps({"oneOf": [{"type": "object", "properties": {"k": {"const": index}}, "required": ["k"]} for index in range(5_000)]}),
        json.dumps({"enum": [f"value {index}" for index in range(30_000)]}),
        json.dumps({"$defs": {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(9_000)}, "$ref": "#/$defs/d0"}),
        json.dumps({"type": "string", "pattern": "(a+)+" * 20_000}),
        '{"items":' * 10_000 + "{}" + "}" * 10_000,
    ],
    ids=["wide anyOf", "wide oneOf", "huge enum", "long chain of references", "long pattern", "deep"],
)
def test_hostile_schemas_are_judged_quickly(text: str) -> None:
    started = time.process_time()
    try:
        parse_schema(text)
        select_backend(schema_spec(json.loads(text)))
    except GrammarError:
        pass
    assert time.process_time() - started < 5


def test_nesting_is_refused_before_recursion() -> None:
    with pytest.raises(GrammarTooLarge):
        parse_schema('{"items":' * 200 + "{}" + "}" * 200)
    parse_schema('{"items":' * 120 + "{}" + "}" * 120)


def test_an_open_schema_says_what_json_schema_says() -> None:
    properties: Json = {"a": {"type": "null"}}
    assert schema_of({"properties": properties}, closed=False).normal == {"properties": properties}
    assert schema_of({"prefixItems": [True]}, closed=False).normal == {"prefixItems": [True]}
    assert schema_of({"multipleOf": 3, "type": "integer"}, closed=False).normal == {"multipleOf": 3, "type": "integer"}


@pytest.mark.parametrize("keyword", ["not", "if", "contains", "oneOf"])
def test_nothing_is_narrowed_where_a_part_is_negated(keyword: str) -> None:
    part: Json = {"properties": {"a": {"type": "string"}}, "minimum": 3}
    document: Json = {keyword: [part, {"type": "object"}] if keyword == "oneOf" else part}
    assert schema_of(document).normal == document


def test_a_dialect_of_ones_own_is_refused_where_keywords_count() -> None:
    schema: Json = {"$schema": "https://example.com/mine", "type": "integer"}
    assert schema_of(schema).normal == {"type": "integer"}
    with pytest.raises(UnsupportedGrammar):
        schema_of(schema, closed=False)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"not": True},
        {"type": "string", "not": {"type": "string"}},
        {"oneOf": [True, True]},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/no"},
    ],
)
def test_a_schema_that_leaves_no_value_is_invalid(schema: Any) -> None:
    whole = {**schema, "$defs": {"no": False}} if isinstance(schema, dict) else schema
    with pytest.raises(NothingMatches, match="matches"):
        select_backend(replace(schema_spec(whole), closed=False))
