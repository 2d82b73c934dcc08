"""Which schemas have objects with names that they do not list, and always one more of them."""

from __future__ import annotations

from typing import Any

import pytest

from grammar_service.guards.name_language import never_runs_out
from grammar_service.guards.plan import plan_of
from grammar_service.regexes.string_set import StringSet

OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        OBJECT,
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "null"}]},
        {"type": ["string", "object"]},
        {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": {"type": "null"}}]},
        {"type": "object", "patternProperties": {"^x-": True}, "additionalProperties": False},
        {"type": "object", "properties": {"a": True}, "additionalProperties": False},
        {"$ref": "#/$defs/a", "$defs": {"a": OBJECT}},
    ],
)
def test_names_that_are_not_listed_are_guarded(schema: Any) -> None:
    assert plan_of(schema) is not None


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string"},
        {"enum": [{"a": 1}]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"type": "array", "items": {"type": "null"}},
        {"type": "array", "items": False},
        {"type": "array", "prefixItems": [{"type": "null"}], "maxItems": 1},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"const": {"a": 1}}]}}},
    ],
)
def test_listed_names_are_not(schema: Any) -> None:
    assert plan_of(schema) is None


@pytest.mark.parametrize("pattern", ["^x-", "a", "^[a-z]+$", "", "^a.*b$"])
def test_there_is_always_one_more_name(pattern: str) -> None:
    assert never_runs_out(StringSet.of_pattern(pattern))


@pytest.mark.parametrize("pattern", ["^a$", "^[ab]$", "^[a-z]{1,63}$", "^(a|b+)$", "^a*(b|c)$", "^(a|b)*c$"])
def test_names_may_run_out(pattern: str) -> None:
    assert not never_runs_out(StringSet.of_pattern(pattern))
    schema = {"type": "object", "patternProperties": {pattern: True}, "additionalProperties": False}
    assert plan_of(schema) is None
