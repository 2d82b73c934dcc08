"""Unknown keywords assert nothing, change nothing, and are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.key import grammar_key
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
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
        ("/id", None),
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


def test_thousands_of_them_are_a_few_warnings() -> None:
    assert len(parse_schema(json.dumps({"type": "integer", **{f"unknown{n}": n for n in range(5000)}})).warnings) == MOST


@pytest.mark.parametrize("keyword", ["dependencies", "additionalItems", "nullable", "divisibleBy"])
def test_an_assertion_of_another_dialect_is_no_annotation(keyword: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=keyword):
        parse_schema(json.dumps({"type": "object", keyword: True}))


def test_a_reference_into_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(InvalidGrammar, match="where there is no schema"):
        parse_schema(json.dumps({"shapes": {"a": {"type": "integer"}}, "$ref": "#/shapes/a"}))


def test_an_unknown_format_is_an_annotation_and_is_told() -> None:
    odd, plain = {"type": "string", "format": "date_time"}, {"type": "string"}
    (warning,) = parse_schema(json.dumps(odd)).warnings
    assert (warning.code, warning.pointer, warning.did_you_mean) == ("unknown_format", "/format", "date-time")
    assert parse_schema(json.dumps(odd)).normal == plain
    assert grammar_key(spec(odd), "b", "1", "f") == grammar_key(spec(plain), "b", "1", "f")


def test_a_known_format_is_none() -> None:
    known = {"type": "string", "format": "date-time"}
    assert parse_schema(json.dumps(known)).warnings == ()
    assert parse_schema(json.dumps(known)).normal == known


def test_where_formats_annotate_nobody_is_warned_of_them() -> None:
    schema = json.dumps({"properties": {"format": {"format": "date"}, "b": {"format": "odd"}}})
    found = parse_schema(schema, formats=False)
    assert found.warnings == ()
    assert found.normal["properties"] == {"format": {}, "b": {}}
