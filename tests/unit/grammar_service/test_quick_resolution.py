"""What an event loop may resolve is short, and has no keyword that combines schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.resolve import QUICK_REGEX, QUICK_SCHEMA, QUICK_TEXT, resolves_quickly
from grammar_service.spec import GrammarKind, GrammarSpec

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PAIRS = {"oneOf": [{"properties": {f"a{number}": {"type": "null"}}} for number in range(100)]}
PATTERNS = {"anyOf": [{"type": "object", "patternProperties": {f"^x{number}": {}}} for number in range(80)]}


def schema(value: Any) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(value))


def test_a_schema_of_everyday_is_quick() -> None:
    assert resolves_quickly(schema(PERSON))
    assert resolves_quickly(GrammarSpec(GrammarKind.JSON_OBJECT, ""))
    assert resolves_quickly(schema({"type": "object", "properties": {"color": {"enum": ["red", "blue"]}, "kind": {"const": "a"}}}))


SLOW = [
    {"not": {}},
    {"allOf": []},
    {"enum": [1, {"a": 1}]},
    {"enum": [[1], 2]},
    {"enum": ["]", {"a": 0}]},
    {"const": {}},
    {"additionalProperties": {}},
]


COMPOSED = [
    {"properties": {"a": {"$ref": "#/$defs/b", "required": ["c"]}}, "$defs": {"b": {}}},
    {"properties": {"a": {"$ref": "#/hidden/0"}}, "hidden": [{"anyOf": [{}], "properties": {}}]},
]
"""Fifteen references to one that combines 180 alternatives took 0.7 s."""
FORMATS = [{"format": "uri", "const": "x"}, {"format": "email", "$ref": "#"}, {"properties": {"a": {"format": "date", "anyOf": [{}]}}}]


@pytest.mark.parametrize("value", [PAIRS, PATTERNS, *SLOW, *COMPOSED, *FORMATS, {"title": "x" * QUICK_SCHEMA}])
def test_one_that_combines_schemas_or_is_long_is_not(value: Any) -> None:
    assert not resolves_quickly(schema(value))


def test_a_keyword_cannot_be_hidden_by_escapes() -> None:
    assert not resolves_quickly(GrammarSpec(GrammarKind.JSON_SCHEMA, r'{"\u006fneOf": []}'))


@pytest.mark.parametrize(
    ("kind", "most"), [(GrammarKind.REGEX, QUICK_REGEX), (GrammarKind.EBNF, QUICK_TEXT), (GrammarKind.CHOICE, QUICK_TEXT)]
)
def test_other_grammars_are_quick_where_they_are_short(kind: GrammarKind, most: int) -> None:
    assert resolves_quickly(GrammarSpec(kind, "a" * most))
    assert not resolves_quickly(GrammarSpec(kind, "a" * (most + 1)))
    assert not resolves_quickly(GrammarSpec(GrammarKind.STRUCTURAL_TAG, "{}"))


@pytest.mark.parametrize("regex", ["(?!.*a)b" * 100, "(?=a)a", "(?<=a)b", "(?<!a)b", r"a\bb", r"a\B", "a^b", "a$b", r"a\\^b"])
def test_what_looks_around_is_not_quick(regex: str) -> None:
    assert not resolves_quickly(GrammarSpec(GrammarKind.REGEX, regex))


@pytest.mark.parametrize("regex", ["^a$", "(?:a|b)+", "(?P<name>a)", "[a-z]{3}", '[^"]+', r"\$\d+\.\^", ""])
def test_anchors_at_the_ends_are_quick(regex: str) -> None:
    assert resolves_quickly(GrammarSpec(GrammarKind.REGEX, regex))
