"""Definitions of two tools that share a name and differ get names of their own before anybody joins them."""

from __future__ import annotations

import copy
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.constraints.tool_calls.definitions import MOST, with_distinct_definitions
from deployments.errors import ApiError

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def tool(name: str, definitions: Any, **schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, **schema, "$defs": definitions}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def parameters(tools: Any, index: int) -> dict[str, Any]:
    schema: dict[str, Any] = tools[index]["function"]["parameters"]
    return schema


def test_a_definition_that_differs_gets_another_name_and_references_follow() -> None:
    mapping = {"propertyName": "kind", "mapping": {"a": "#/$defs/X", "b": "other"}}
    inner = {"X": NUMBER, "Y": {"items": {"$ref": "#/$defs/X"}, "const": {"$ref": "#/$defs/X"}, "discriminator": mapping}}
    asked = [tool("f", {"X": TEXT}), tool("g", inner, anyOf=[{"$ref": "#/$defs/X/anyOf/0"}, {"$ref": "#/$defs/Y"}])]
    before = copy.deepcopy(asked)
    told = with_distinct_definitions(asked)
    assert asked == before
    assert told[0] == asked[0]
    second = parameters(told, 1)
    assert second["$defs"].keys() == {"X_2", "Y"}
    assert second["properties"]["x"]["$ref"] == "#/$defs/X_2"
    assert [branch["$ref"] for branch in second["anyOf"]] == ["#/$defs/X_2/anyOf/0", "#/$defs/Y"]
    renamed = second["$defs"]["Y"]
    assert renamed["items"]["$ref"] == "#/$defs/X_2"
    assert renamed["const"] == {"$ref": "#/$defs/X"}, "data is left alone"
    assert renamed["discriminator"]["mapping"] == {"a": "#/$defs/X_2", "b": "other"}


def test_equal_definitions_keep_their_name() -> None:
    asked = [tool("f", {"X": TEXT}), tool("g", {"X": dict(TEXT)})]
    assert with_distinct_definitions(asked) == asked


def test_a_name_that_is_taken_is_passed_over() -> None:
    asked = [tool("f", {"X": TEXT, "X_2": TEXT}), tool("g", {"X": NUMBER, "X_3": TEXT})]
    told = with_distinct_definitions(asked)
    assert parameters(told, 1)["$defs"].keys() == {"X_4", "X_3"}


def test_names_with_slashes_and_references_in_percent_code_are_followed() -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/a~1b%20c"}}}
    told = with_distinct_definitions([tool("f", {"a/b c": TEXT}), tool("g", {"a/b c": NUMBER}, **schema)])
    assert parameters(told, 1)["properties"]["x"]["$ref"] == "#/$defs/a~1b c_2"


def test_thousands_of_definitions_of_one_name_take_no_time() -> None:
    asked = [tool(f"f{index}", {"X": {"const": index}}) for index in range(4000)]
    started = time.process_time()
    told = with_distinct_definitions(asked)
    assert time.process_time() - started < 5  # a fraction of that on an idle processor
    assert parameters(told, 3999)["$defs"].keys() == {"X_4000"}


def test_a_long_chain_of_definitions_takes_no_time() -> None:
    chain = {f"D{index}": {"$ref": f"#/$defs/D{index + 1}"} for index in range(2000)}
    asked = [tool("f", {**chain, "D2000": TEXT}), tool("g", {**chain, "D2000": NUMBER})]
    started = time.process_time()
    told = with_distinct_definitions(asked)
    assert time.process_time() - started < 5  # a fraction of that on an idle processor
    assert parameters(told, 1)["$defs"]["D0_2"] == {"$ref": "#/$defs/D1_2"}


def test_more_definitions_than_are_read_in_time_are_refused() -> None:
    many = {f"D{index}": TEXT for index in range(MOST // 2 + 1)}
    with pytest.raises(ApiError, match="definitions"):
        with_distinct_definitions([tool("f", many), tool("g", many)])


def test_what_is_no_tool_is_left_as_it_is() -> None:
    for asked in (None, "x", [1, {"function": 2}, {"function": {"parameters": []}}, tool("f", 5)]):
        assert with_distinct_definitions(asked) == asked


@given(st.lists(st.dictionaries(st.sampled_from("XYZ"), st.sampled_from([TEXT, NUMBER, {"$ref": "#/$defs/X"}]), min_size=1), max_size=4))
def test_no_two_definitions_of_one_name_differ_and_each_tool_means_what_it_meant(defined: list[dict[str, Any]]) -> None:
    asked = [tool(f"f{index}", {"X": NUMBER, **inner}) for index, inner in enumerate(defined)]
    for index, each in enumerate(asked):
        if parameters(asked, index)["$defs"]["X"] == {"$ref": "#/$defs/X"}:
            each["function"]["parameters"]["$defs"]["X"] = TEXT
    told = with_distinct_definitions(asked)
    joined: dict[str, Any] = {}
    for index in range(len(told)):
        for name, inner in parameters(told, index)["$defs"].items():
            assert joined.setdefault(name, inner) == inner
        for value in ({"x": 1}, {"x": "a"}):
            assert valid(value, parameters(told, index)) == valid(value, parameters(asked, index))


def valid(value: Any, schema: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)
