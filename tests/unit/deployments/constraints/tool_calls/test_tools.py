"""Tools whose schemas have names of their own mean among others what they mean alone."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deployments.constraints.tool_calls.tools import MAX_TOOL_VALUES, Tool, parse_tools, required_grammar
from deployments.errors import ApiError
from grammar_service.schema.json_schema import parse_schema
from grammar_service.spec import STANDARD

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NAMED = "https://example.org/tool"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": TEXT}},
        {"$id": NAMED, "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": TEXT}},
        {"$id": NAMED, "properties": {"a": {"$ref": "tool#/$defs/a"}, "b": {"$ref": "#"}}, "$defs": {"a": TEXT}},
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$id": NAMED, "$ref": "#/$defs/b", "$defs": {"b": TEXT}}}},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": NAMED,
            "properties": {"a": {"$ref": "#/definitions/a"}},
            "definitions": {"a": TEXT},
        },
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#/definitions/a"}},
            "definitions": {"a": TEXT},
        },
    ],
)
def test_references_of_a_tool_lead_where_they_led(schema: dict[str, Any]) -> None:
    other = Tool("other", {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": WHOLE}}, True)
    read = parse_schema(required_grammar([Tool("one", {"type": "object", **schema}, True), other], False, STANDARD).spec.text, closed=False)
    validator = Draft202012Validator(read.normal)
    answers = [[{"name": name, "parameters": {"a": value}}] for name in ("one", "other") for value in ("text", 1)]
    assert [validator.is_valid(answer) for answer in answers] == [True, False, False, True]


def test_tools_have_no_more_values_than_a_chat_template_writes_in_a_moment() -> None:
    def tools(numbers: int) -> list[Any]:
        return [{"type": "function", "function": {"name": "a", "parameters": {"examples": [0.5] * numbers}}}]

    assert parse_tools({"tools": tools(MAX_TOOL_VALUES - 10)})
    with pytest.raises(ApiError) as caught:
        parse_tools({"tools": tools(MAX_TOOL_VALUES)})
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, "tools", "over_limit")
