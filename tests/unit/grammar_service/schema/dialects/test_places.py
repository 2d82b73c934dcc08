"""Faults and reasons point into what the user wrote, whatever became of it."""

from __future__ import annotations

from typing import Any

import pytest

from grammar_service.backends import select_backend
from grammar_service.errors import GrammarError
from grammar_service.schema.dialects.places import Places
from grammar_service.schema.json_text import Json
from grammar_service.schema.pointer import resolve
from tests.driving import schema_spec

WEAK: Json = {"type": "array", "contains": {"type": "null"}, "minContains": 300, "maxContains": 300}
EMPTY: Json = {"const": 1, "type": "string"}
ENDLESS: Json = {"$ref": "#"}
FAULTS: dict[str, tuple[Any, str]] = {
    "items by place": ({"items": [True, WEAK]}, "/items/1/contains"),
    "items behind those": ({"items": [True], "additionalItems": {"items": [WEAK]}}, "/additionalItems/items/0/contains"),
    "a schema that depends": ({"dependencies": {"a/b": {"properties": {"c": WEAK}}}}, "/dependencies/a~1b/properties/c/contains"),
    "names that depend": ({"type": "object", "dependencies": {f"a{i}": [f"b{i}"] for i in range(30)}}, "/dependencies"),
    "names that depend in two words": (
        {"type": "object", "dependencies": {f"a{i}": [f"b{i}"] for i in range(30)}, "dependentRequired": {"c": ["d"]}},
        "/dependentRequired",
    ),
    "an unknown keyword": ({"x-shapes": {"a": [WEAK]}, "items": {"$ref": "#/x-shapes/a/0"}}, "/x-shapes/a/0/contains"),
    "a schema inside one of those": (
        {"shapes": {"a": {"items": [WEAK]}}, "items": {"$ref": "#/shapes/a"}},
        "/shapes/a/items/0/contains",
    ),
    "no type of such a schema": ({"shapes": {"a": {"type": "x"}}, "items": {"$ref": "#/shapes/a"}}, "/shapes/a/type"),
    "a value of no type": ({"dependencies": {"a": {"items": [EMPTY]}}}, "/dependencies/a/items/0/const"),
    "a value of no type outside": ({"shapes": [EMPTY], "items": {"$ref": "#/shapes/0"}}, "/shapes/0/const"),
    "no dependency": ({"items": [{"dependencies": {"a": 1}}]}, "/items/0/dependencies"),
    "no reference": ({"items": [{"$recursiveRef": "#/a"}]}, "/items/0/$recursiveRef"),
    "nothing at the end of a reference": ({"items": [{"$ref": "#/shapes/a"}], "shapes": []}, "/items/0/$ref"),
    "data at the end of a reference": ({"items": [{"$ref": "#/shapes"}], "shapes": []}, "/items/0/$ref"),
    "a circle": ({"shapes": {"a": {"anyOf": [{"$ref": "#/shapes/a"}]}}, "items": {"$ref": "#/shapes/a"}}, "/shapes/a"),
    "no end": (
        {"shapes": {"a": {"type": "object", "properties": {"b": {"$ref": "#/shapes/a"}}, "required": ["b"]}}, "$ref": "#/shapes/a"},
        "",
    ),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_at_its_place_in_the_users_text(case: tuple[Any, str]) -> None:
    schema, pointer = case
    with pytest.raises(GrammarError) as caught:
        select_backend(schema_spec(schema))
    assert caught.value.pointer == pointer
    assert resolve(schema, pointer) is not None


def test_a_reason_is_told_at_its_place_in_the_users_text() -> None:
    schema: Any = {"items": [{"type": "string", "not": {"$ref": "#/shapes/a"}}], "shapes": {"a": {"pattern": r"(a)\1"}}}
    with pytest.raises(GrammarError, match=r"/shapes/a/pattern"):
        select_backend(schema_spec(schema))


def test_what_has_not_moved_keeps_its_place() -> None:
    places = Places({"/a/prefixItems": "/a/items", "/a/prefixItems/1/items": "/a/items/1/additionalItems"})
    assert places.original("/a/prefix") == "/a/prefix"
    assert places.original("/a/prefixItems/10/type") == "/a/items/10/type"
    assert places.original("/a/prefixItems/1/items/type") == "/a/items/1/additionalItems/type"
    assert Places().original("/a/items") == "/a/items"
