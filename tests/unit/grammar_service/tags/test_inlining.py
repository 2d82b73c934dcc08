"""Schemas as readers see them that follow no references."""

from __future__ import annotations

import time
from typing import Any

import pytest

from grammar_service.tags.inlining import MOST_READ, with_references_inlined

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
A: dict[str, Any] = {"type": "object", "properties": {"a": TEXT}}
B: dict[str, Any] = {"type": "object", "properties": {"a": NUMBER, "b": {"$ref": "#/$defs/N"}}}
N_SEEN = {"$ref": "#/$defs/N", "type": "integer"}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize(
    ("member", "seen"),
    [
        (TEXT, TEXT),
        ({}, {}),
        (True, True),
        ({"const": 5}, {"const": 5, "type": "integer"}),
        (ref("N"), N_SEEN),
        (ref("A"), {**ref("A"), "type": "object", "properties": {"a": TEXT}}),
        (
            {"anyOf": [ref("A"), {"type": "null"}]},
            {"anyOf": [ref("A"), {"type": "null"}], "type": "object", "properties": {"a": TEXT}},
        ),
        (
            {"anyOf": [ref("A"), ref("B")]},
            {
                "anyOf": [ref("A"), ref("B")],
                "type": "object",
                "properties": {"a": {"anyOf": [TEXT, NUMBER]}, "b": N_SEEN},
            },
        ),
        ({"type": "array", "items": ref("N")}, {"type": "array", "items": N_SEEN}),
        (
            {"type": "array", "prefixItems": [TEXT, NUMBER]},
            {"type": "array", "prefixItems": [TEXT, NUMBER], "items": {"anyOf": [TEXT, NUMBER]}},
        ),
        # Of a list of lists, one level.
        (ref("L"), {**ref("L"), "type": "array", "items": {**ref("L"), "type": "array"}}),
        (ref("nowhere"), ref("nowhere")),
    ],
)
def test_what_is_said_elsewhere_is_in_view(member: Any, seen: Any) -> None:
    definitions = {"A": A, "B": B, "N": NUMBER, "L": {"type": "array", "items": ref("L")}}
    schema: dict[str, Any] = {"type": "object", "properties": {"m": member}, "$defs": definitions}
    assert with_references_inlined(schema)[0] == {**schema, "properties": {"m": seen}}


def test_a_schema_of_too_many_parts_is_left_as_it_is() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {f"p{n}": {"const": n} for n in range(MOST_READ)}}
    assert with_references_inlined(schema)[0] is schema


@pytest.mark.parametrize("keyword", ["allOf", "properties"])
def test_references_that_double_at_each_level_take_no_long_time(keyword: str) -> None:
    inner = [[ref(f"a{n + 1}")] * 3 for n in range(3000)]
    definitions: dict[str, Any] = {
        f"a{n}": {keyword: three if keyword == "allOf" else {f"p{index}": one for index, one in enumerate(three)}}
        for n, three in enumerate(inner)
    }
    schema: dict[str, Any] = {"properties": {"p": ref("a0")}, "$defs": definitions}
    began = time.thread_time()
    assert with_references_inlined(schema)[0] is schema
    assert time.thread_time() - began < 0.5


TYPES: dict[str, Any] = {"type": [str(number) for number in range(2000)]}
for _ in range(45):
    TYPES = {"anyOf": [TYPES]}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": TYPES}},
        {
            "properties": {f"p{n}": {"$ref": "#/$defs/M"} for n in range(300)},
            "$defs": {"M": {"properties": {f"m{n}": True for n in range(5000)}}},
        },
        {"properties": {f"p{n}": {"$ref": "#/$defs/E"} for n in range(300)}, "$defs": {"E": {"enum": [f"e{n}" for n in range(5000)]}}},
        {
            "properties": {f"p{n}": {"$ref": "#/$defs/" + "%41" * 500} for n in range(300)},
            "$defs": {"A" * 500: {"$ref": "#/$defs/" + "%41" * 500}},
        },
    ],
    ids=["types", "members", "values", "names"],
)
def test_what_is_met_again_and_again_is_read_within_a_bound(schema: dict[str, Any]) -> None:
    began = time.thread_time()
    seen, read = with_references_inlined(schema)
    assert time.thread_time() - began < 0.5
    assert read <= 3 * MOST_READ or seen is schema
