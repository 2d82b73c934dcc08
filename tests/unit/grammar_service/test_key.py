from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.key import grammar_key
from grammar_service.spec import GrammarKind, GrammarSpec
from tests.driving import schema_spec

BASE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


def key(spec: GrammarSpec, backend: str = "x", version: str = "1", fingerprint: str = "f") -> str:
    return grammar_key(spec, backend, version, fingerprint)


@pytest.mark.parametrize("annotation", [{"title": "T"}, {"description": "d"}, {"$comment": "c"}, {"examples": [1]}])
def test_annotations_do_not_change_the_key(annotation: dict[str, Any]) -> None:
    inner = {**BASE, "properties": {"a": {"type": "string", **annotation}, "b": {"type": "integer"}}}
    assert key(schema_spec({**BASE, **annotation})) == key(schema_spec(inner)) == key(schema_spec(BASE))


def test_insignificant_json_whitespace_does_not_change_the_key() -> None:
    assert key(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(BASE, indent=3))) == key(schema_spec(BASE))


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}},
        {"type": "object", "properties": {**BASE["properties"], "title": {"type": "string"}}},
        {**BASE, "required": ["a"]},
    ],
)
def test_what_changes_the_grammar_changes_the_key(changed: dict[str, Any]) -> None:
    assert key(schema_spec(changed)) != key(schema_spec(BASE))


@pytest.mark.parametrize("keyword", ["const", "default"])
def test_data_that_looks_like_an_annotation_is_kept(keyword: str) -> None:
    assert key(schema_spec({keyword: {"title": "a"}})) != key(schema_spec({keyword: {"title": "b"}}))
    assert key(schema_spec({"enum": [{"title": "a"}]})) != key(schema_spec({"enum": [{"title": "b"}]}))


DRAFT_07, LATEST = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"


def test_one_meaning_in_two_dialects_has_one_key() -> None:
    older = {"$schema": DRAFT_07, "items": [{"type": "null"}], "additionalItems": False}
    newer = {"$schema": LATEST, "prefixItems": [{"type": "null"}], "items": False}
    assert key(schema_spec(older)) == key(schema_spec(newer))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {"type": "integer"}}},
        {"type": "string", "prefixItems": [{"type": "null"}]},
        {"items": {"type": "object", "dependentRequired": {"a": ["b"]}}},
    ],
)
def test_the_same_words_with_two_meanings_have_two_keys(schema: dict[str, Any]) -> None:
    assert key(schema_spec({"$schema": DRAFT_07, **schema})) != key(schema_spec({"$schema": LATEST, **schema}))


def test_an_unknown_keyword_counts_where_a_reference_leads_into_it() -> None:
    for place in ("shapes", "examples"):
        keys = [key(schema_spec({"$ref": f"#/{place}/0", place: [{"type": kind}]})) for kind in ("null", "integer")]
        assert keys[0] != keys[1]
    assert key(schema_spec({"type": "null", "shapes": 1})) == key(schema_spec({"type": "null", "shapes": 2}))


def test_names_count_by_what_they_refer_to() -> None:
    definitions = {"a": {"id": "x", "type": "null"}, "b": {"id": "y", "type": "integer"}}
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://e.com/", "definitions": definitions}
    assert key(schema_spec({**schema, "items": {"$ref": "x"}})) != key(schema_spec({**schema, "items": {"$ref": "y"}}))
    assert key(schema_spec({**schema, "items": {"$ref": "x"}})) == key(schema_spec({**schema, "items": {"$ref": "#/definitions/a"}}))


def test_backend_version_tokenizer_kind_and_whitespace_change_the_key() -> None:
    spec = schema_spec(BASE)
    others = [
        key(spec, backend="y"),
        key(spec, version="2"),
        key(spec, fingerprint="g"),
        key(schema_spec(BASE, "compact")),
        key(GrammarSpec(GrammarKind.STRUCTURAL_TAG, spec.text)),
        key(GrammarSpec(GrammarKind.STRUCTURAL_TAG, spec.text, "flexible")),
        key(replace(spec, closed=False)),
        key(GrammarSpec(GrammarKind.STRUCTURAL_TAG, spec.text, closed=False)),
    ]
    assert len({key(spec), *others}) == 9


@pytest.mark.parametrize("kind", [GrammarKind.JSON_SCHEMA, GrammarKind.STRUCTURAL_TAG])
def test_whether_formats_assert_counts_where_one_stands(kind: GrammarKind) -> None:
    def keys(schema: dict[str, Any]) -> set[str]:
        text = json.dumps(schema if kind is GrammarKind.JSON_SCHEMA else {"type": "json_schema", "json_schema": schema})
        return {key(GrammarSpec(kind, text, formats=formats)) for formats in (True, False)}

    assert len(keys(BASE)) == 1
    assert len(keys({"items": {"format": "date"}})) == 2


def test_options_are_ignored_where_they_mean_nothing() -> None:
    assert key(GrammarSpec(GrammarKind.REGEX, "a", "compact")) == key(GrammarSpec(GrammarKind.REGEX, "a", "standard", closed=False))


@given(st.text(max_size=20), st.text(max_size=20))
def test_parts_never_run_into_each_other(left: str, right: str) -> None:
    first = GrammarSpec(GrammarKind.REGEX, left + right)
    second = GrammarSpec(GrammarKind.REGEX, left)
    if right:
        assert key(first, backend="x") != key(second, backend=right + "x")
