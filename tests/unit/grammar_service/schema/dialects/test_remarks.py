"""Unknown keywords assert nothing, change nothing, and are told; so is what may mislead."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grammar_service.conformance.suite import DRAFTS
from grammar_service.errors import UnsupportedGrammar
from grammar_service.key import grammar_key
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.schema.dialects.remarks import NO_EFFECT, TWO_READINGS, UNKNOWN_KEYWORD
from grammar_service.schema.json_schema import parse_schema
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import MOST

PLAIN = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
ANNOTATED = {
    "type": "object",
    "id": "thing",
    "_format": {"x": 1},
    "properties": {"id": {"type": "string", "readonly": True, "maxlength": 3}},
    "required": ["id"],
}


def spec(schema: Any) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema))


def test_unknown_keywords_change_neither_the_schema_nor_the_key() -> None:
    assert parse_schema(json.dumps(ANNOTATED)).normal == parse_schema(json.dumps(PLAIN)).normal
    assert grammar_key(spec(ANNOTATED), "b", "1", "f") == grammar_key(spec(PLAIN), "b", "1", "f")


def test_they_are_told_with_what_may_have_been_meant() -> None:
    warnings = resolve(spec(ANNOTATED), Limits(), "fingerprint").warnings
    assert [(warning.pointer, warning.did_you_mean) for warning in warnings] == [
        ("/_format", "format"),
        ("/properties/id/readonly", None),
        ("/properties/id/maxlength", "maxLength"),
    ]
    assert {warning.code for warning in warnings} == {"unknown_keyword"}
    assert resolve(spec(PLAIN), Limits(), "fingerprint").warnings == ()


@pytest.mark.parametrize(("written", "meant"), [("additonalProperties", "additionalProperties"), ("requred", "required"), ("ref", "$ref")])
def test_a_misspelt_assertion_is_named(written: str, meant: str) -> None:
    (warning,) = parse_schema(json.dumps({"type": "object", written: {}})).warnings
    assert warning.did_you_mean == meant


def test_names_of_properties_and_data_are_no_keywords() -> None:
    schema = {"properties": {"maxlength": {"const": {"readonly": 1}}}, "$defs": {"alias": True}, "x-order": 1}
    assert parse_schema(json.dumps(schema)).warnings == ()


def test_schemas_in_a_tag_are_told_of_at_their_place_in_it() -> None:
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "integer", "alias": "n"}}}
    found = resolve(GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(tag)), Limits(), "fingerprint")
    assert [warning.pointer for warning in found.warnings] == ["/format/json_schema/alias"]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (ANNOTATED, "/_format"),
        ({"allOf": [{"nullable": True}] * 30, "items": {"maxlength": 1}}, "/items/maxlength"),
    ],
)
def test_a_request_may_have_them_refused(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="Did you mean") as caught:
        resolve(replace(spec(schema), refuses_unknown=True), Limits(), "fingerprint")
    assert caught.value.pointer == pointer
    assert resolve(replace(spec(PLAIN), refuses_unknown=True), Limits(), "f").key == resolve(spec(PLAIN), Limits(), "f").key


def test_a_tag_may_have_them_refused_in_its_schemas() -> None:
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "integer", "alias": "n"}}}
    with pytest.raises(UnsupportedGrammar) as caught:
        resolve(GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(tag), refuses_unknown=True), Limits(), "fingerprint")
    assert caught.value.pointer == "/format/json_schema/alias"


def test_thousands_of_them_are_a_few_warnings() -> None:
    assert len(parse_schema(json.dumps({"type": "integer", **{f"unknown{n}": n for n in range(5000)}})).warnings) == MOST


@pytest.mark.parametrize("keyword", ["$schema", "$id", "id", "$anchor", "$comment", "definitions", "x-order", "$vocabulary"])
def test_what_names_or_describes_is_not_told(keyword: str) -> None:
    value = {} if keyword in ("definitions", "$vocabulary") else "a"
    assert parse_schema(json.dumps({"type": "object", keyword: value})).warnings == ()
    for draft in DRAFTS.values():
        assert not {keyword, "$schema"} & {w.pointer[1:] for w in parse_schema(json.dumps({"$schema": draft, "id": "a"})).warnings}


@pytest.mark.parametrize(
    ("draft", "keyword"),
    [("draft4", "const"), ("draft6", "if"), ("draft7", "prefixItems"), ("draft2019-09", "$dynamicRef"), ("draft2020-12", "nullable")],
)
def test_a_keyword_that_the_named_dialect_does_not_know_is_an_annotation(draft: str, keyword: str) -> None:
    schema = {"$schema": DRAFTS[draft], "type": "object", keyword: {"type": "x"}}
    (warning,) = parse_schema(json.dumps(schema)).warnings
    assert (warning.code, warning.pointer) == (UNKNOWN_KEYWORD, f"/{keyword}")
    assert draft.removeprefix("draft").lstrip("0") in warning.message
    assert parse_schema(json.dumps(schema)).normal == {"type": "object"}


MISLEADING: dict[str, tuple[Any, str, str]] = {
    "nullable without a type": ({"enum": [1], "nullable": True}, NO_EFFECT, "/nullable"),
    "nullable beside a reference": ({"$ref": "#/$defs/a", "$defs": {"a": {}}, "nullable": True}, NO_EFFECT, "/nullable"),
    "additionalItems without items": ({"additionalItems": False}, NO_EFFECT, "/additionalItems"),
    "an assertion beside a reference": ({"$ref": "#/$defs/a", "$defs": {"a": {}}, "minimum": 3}, TWO_READINGS, "/$ref"),
    "a fragment below an id": (
        {"definitions": {"a": {}}, "items": {"id": "b", "items": {"$ref": "#/definitions/a"}}},
        TWO_READINGS,
        "/items/items/$ref",
    ),
}


@pytest.mark.parametrize("case", MISLEADING.values(), ids=MISLEADING)
def test_what_another_reading_may_be_of_is_told(case: tuple[Any, str, str]) -> None:
    schema, code, pointer = case
    assert [(warning.code, warning.pointer) for warning in parse_schema(json.dumps(schema)).warnings] == [(code, pointer)]


def test_a_schema_that_names_its_dialect_has_one_reading() -> None:
    schema = {"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}, "minimum": 3}
    for draft in DRAFTS.values():
        assert parse_schema(json.dumps({"$schema": draft, **schema})).warnings == ()


def test_annotations_beside_a_reference_are_not_told() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {}}, "description": "d", "default": 1, "nullable": False}
    assert parse_schema(json.dumps(schema)).warnings == ()


def test_a_keyword_into_which_a_reference_leads_is_not_told() -> None:
    schema = {"shapes": {"a": {"type": "integer", "alias": 1}}, "colours": 1, "$ref": "#/shapes/a"}
    assert [warning.pointer for warning in parse_schema(json.dumps(schema)).warnings] == ["/colours", "/shapes/a/alias"]
