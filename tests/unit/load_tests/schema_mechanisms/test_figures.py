"""What is served with all mechanisms, and how many fewer without one."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from grammar_service.conformance.isolation import in_child
from load_tests.schema_mechanisms.__main__ import row_of
from load_tests.schema_mechanisms.figures import headings, lines, targets
from load_tests.schema_mechanisms.mechanisms import ALL, MECHANISMS, Mechanism

KINDS = [{"required": ["a"], "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}, {"required": ["b"]}]
UNLIKE = {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
SERVED_BY: dict[str, dict[str, Any]] = {
    "rewrites": {"allOf": [{"minimum": 2}, {"type": "integer"}], "not": {"const": 3}},
    "items of any kind": UNLIKE,
    "items counted by rules": {"type": "array", "contains": {"type": "string"}, "minContains": 2},
    "numbers left out": {"multipleOf": 3, "type": "integer", "maximum": 9},
    "members left out": {"type": "object", "oneOf": KINDS},
    "`minProperties`": {"properties": {name: {"type": "string"} for name in "abc"}, "minProperties": 2, "additionalProperties": False},
    "`maxProperties`": {"properties": {name: {"type": "string"} for name in "abc"}, "maxProperties": 2, "additionalProperties": False},
}


def row(left_out: str, of: str, served: int) -> dict[str, Any]:
    return {"left_out": left_out, "set": of, "schemas": 10, "served": served}


def test_the_mechanism_that_serves_the_most_comes_first() -> None:
    rows = [
        row(ALL, "one", 9),
        row(ALL, "two", 8),
        row("few", "one", 8),
        row("few", "two", 8),
        row("many", "one", 4),
        row("many", "two", 8),
    ]
    assert headings(rows) == ["left out", "one, 10", "two, 10"]
    assert lines(rows) == [["nothing", "9", "8"], ["many", "−5", "0"], ["few", "−1", "0"]]
    assert [(target.value, target.holds) for target in targets(rows, "one")] == [(0.9, False)]


@pytest.mark.parametrize("mechanism", [mechanism for mechanism in MECHANISMS if any(mechanism.name.startswith(name) for name in SERVED_BY)])
def test_without_it_a_schema_is_not_served(mechanism: Mechanism) -> None:
    schema = next(schema for name, schema in SERVED_BY.items() if mechanism.name.startswith(name))
    served = [in_child(partial(row_of, used, "one", [schema]), dict[str, Any], 60)["served"] for used in (MECHANISMS[0], mechanism)]
    assert served == [1, 0], json.dumps(schema)
