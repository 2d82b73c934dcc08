"""What the user reads where no backend takes a schema: the keyword, its place, and why there is no schema equal to it that one takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grammar_service.backends import select_backend
from grammar_service.errors import UnsupportedGrammar
from tests.driving import schema_spec

ARRAY = {"type": "array"}
LINK = {"type": "object", "properties": {"next": {"$ref": "#/$defs/link"}}, "additionalProperties": False}
TREE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["kids"]}
REFUSALS: list[tuple[Any, str, str]] = [
    ({"type": "number", "not": {"multipleOf": 3}}, "/not", "numbers that are no multiples are enforced only between near bounds"),
    (
        {"allOf": [{"minimum": -1, "multipleOf": step} for step in (0.3, 0.7000000000000001)]},
        "/allOf",
        "the common multiple is not a number",
    ),
    ({**ARRAY, "allOf": [{"contains": {"const": n}} for n in range(8)]}, "/allOf", "`contains` takes more than 600 steps"),
    ({**ARRAY, "contains": {"const": 1}, "maxContains": 300, "minContains": 300}, "/contains", "`contains` takes more than 600 steps"),
    ({**ARRAY, "contains": {"const": 1}, "uniqueItems": True}, "/contains", "`contains` beside `uniqueItems` is not enforced"),
    (
        {**ARRAY, "prefixItems": [{"enum": [*range(16)]}] * 6 + [{"enum": [0, 1]}] * 2, "minItems": 8, "items": False, "uniqueItems": True},
        "/uniqueItems",
        "`uniqueItems` is enforced in long arrays",
    ),
    (
        {"type": "object", "properties": {f"p{n}": {} for n in range(60)}, "additionalProperties": False, "minProperties": 30},
        "/minProperties",
        "more than 64 choices of names",
    ),
    (
        {**ARRAY, "uniqueItems": True, "items": {"type": "number", "minimum": 3}},
        "/uniqueItems",
        "`uniqueItems` is not enforced for items of which it is not known how many there are",
    ),
    (
        {**ARRAY, "uniqueItems": True, "items": {"$ref": "#/$defs/link"}, "$defs": {"link": LINK}},
        "/uniqueItems",
        "`uniqueItems` of items that hold themselves",
    ),
    ({**ARRAY, "not": {"uniqueItems": True}}, "/not", "arrays with equal items"),
    (
        {"allOf": [{**ARRAY, "prefixItems": [{"type": "null"}] * 65}] * 2, "uniqueItems": True},
        "/uniqueItems",
        "arrays of more than 64 `prefixItems`",
    ),
    (
        {"type": "object", "minProperties": 2, "patternProperties": {"^[ab]$": {}}, "additionalProperties": False},
        "/minProperties",
        "only for names that are known, or do not run out, and one more",
    ),
    (
        {"type": "object", "properties": {name: {} for name in "abcdefgh"}, "additionalProperties": False, "minProperties": 4},
        "/minProperties",
        "more than 64 choices of names",
    ),
    ({"type": "object", "not": {"additionalProperties": {"const": 1}}}, "/not", "objects with some property of a kind, whatever its name"),
    (
        {"type": "object", "additionalProperties": True, "patternProperties": {name: {"const": name} for name in "abcd"}},
        "/patternProperties",
        "more than 12 kinds of property names",
    ),
    (
        {"type": "object", "additionalProperties": True, "patternProperties": {f"^{n}": {"const": n} for n in range(13)}},
        "/patternProperties",
        "more than 12 `patternProperties`",
    ),
    (
        {"allOf": [{"type": "object", "required": [f"{side}{n}" for n in range(1001)]} for side in "ab"], "uniqueItems": True},
        "/uniqueItems",
        "objects of more than 2000 properties",
    ),
    ({"type": "object", "dependentRequired": {f"a{n}": [f"b{n}"] for n in range(30)}}, "/dependentRequired", "too many"),
    (
        {"type": "object", "propertyNames": {"format": "email", "pattern": "a"}},
        "/propertyNames",
        "these patterns are too large to be combined",
    ),
    (
        {"type": "object", "propertyNames": {"maxLength": 101}, "properties": {"a": {}}},
        "/propertyNames",
        "length bounds as large as these cannot be combined with patterns",
    ),
    ({"not": {"format": "time", "enum": ["22:59:60-01:00"]}}, "/not", "whether this value is of the format is not decided here"),
    ({"type": "string", "not": {"pattern": ""}}, "/not", "no string matches"),
    ({"type": "string", "not": {"pattern": "(a|b)*a(a|b){16}"}}, "/not", "too large"),
    ({"type": "string", "not": {"pattern": "a{5000}"}}, "/not", "the pattern is too large to be combined with others"),
    ({"type": "string", "not": {"pattern": "(" * 101 + "a" + ")" * 101}}, "/not", "nested too deep to be combined with others"),
    ({"type": "string", "not": {"pattern": r"(a)\1"}}, "/not", "a back-reference is not supported"),
    ({"type": "object", "uniqueItems": True, "properties": {f"p{n}": {"contains": {}} for n in range(4001)}}, "/properties", "8000 parts"),
]


@pytest.mark.parametrize(("schema", "pointer", "reason"), REFUSALS, ids=[reason for _, _, reason in REFUSALS])
@pytest.mark.parametrize("closed", [True, False])
def test_a_refusal_tells_why_there_is_no_rewrite(schema: Any, pointer: str, reason: str, closed: bool) -> None:
    with pytest.raises(UnsupportedGrammar) as caught:
        select_backend(replace(schema_spec(schema), closed=closed))
    assert caught.value.pointer is not None
    assert caught.value.pointer.startswith(pointer)
    first = caught.value.message.removeprefix("no backend enforces the whole constraint: ").split("; ")[0]
    assert first.startswith(f"{caught.value.pointer} ")
    assert reason in first
