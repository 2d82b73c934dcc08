"""A fault in what was made of tools is told by the tool that has it, as the request names it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, refusal, take_constraint, warnings_of
from deployments.constraints.tool_calls.formats import TOOL_FORMATS
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.messages import ReadyGrammar
from grammar_service.resolve import resolve
from grammar_service.schema.pointer import resolve as value_at

GOOD: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
BAD: dict[str, Any] = {"type": "object", "properties": {"tags": {"type": "object", "properties": {"a": {"type": "number of"}}}}}
DEFINED: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "number of"}}}
AT = {"/properties/tags/properties/a/type": BAD, "/$defs/A/type": DEFINED}
ANSWER = {"type": "json_schema", "json_schema": {"name": "answer", "schema": GOOD}}


def _tools(*schemas: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"function": {"name": f"f{index}", "parameters": schema, "strict": True}} for index, schema in enumerate(schemas)]


def _param(body: dict[str, Any], parser: str = "hermes") -> str | None:
    requested = take_constraint(body, ConstraintDefaults(), parser)
    assert isinstance(requested, Requested)
    with pytest.raises(GrammarError) as caught:
        resolve(requested.spec, Limits(), "tokenizer")
    return refusal(caught.value, requested).param


@pytest.mark.parametrize("parser", ["hermes", "dots"])
@pytest.mark.parametrize("pointer", AT)
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f11"}}])
def test_a_tool_that_must_be_called(choice: Any, pointer: str, parser: str) -> None:
    body = {"tools": _tools(*[GOOD] * 11, AT[pointer]), "tool_choice": choice}
    assert _param(body, parser) == f"tools[11].function.parameters#{pointer}"


@pytest.mark.parametrize("pointer", AT)
def test_the_only_tool(pointer: str) -> None:
    assert _param({"tools": _tools(AT[pointer]), "tool_choice": "required"}) == f"tools[0].function.parameters#{pointer}"


@pytest.mark.parametrize("parser", TOOL_FORMATS)
@pytest.mark.parametrize("beside", [{}, {"response_format": {"type": "json_object"}}, {"response_format": ANSWER}])
@pytest.mark.parametrize("pointer", AT)
def test_a_tool_that_may_be_called(parser: str, beside: dict[str, Any], pointer: str) -> None:
    assert _param({"tools": _tools(GOOD, GOOD, AT[pointer]), **beside}, parser) == f"tools[2].function.parameters#{pointer}"
    assert _param({"tools": _tools(AT[pointer]), **beside}, parser) == f"tools[0].function.parameters#{pointer}"


@pytest.mark.parametrize("parser", TOOL_FORMATS)
def test_the_answer_beside_tools(parser: str) -> None:
    answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": BAD}}
    place = "response_format.json_schema.schema#/properties/tags/properties/a/type"
    assert _param({"tools": _tools(GOOD), "response_format": answer}, parser) == place


ODD: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "maxlength": 3}}}
ODD_INSIDE: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"maxlength": 3}}}
WORD = {"/properties/a/maxlength": ODD, "/$defs/A/maxlength": ODD_INSIDE}


def _warned(body: dict[str, Any]) -> set[str]:
    """Pointers of the warnings, each of which must lead to a word of the body."""
    asked = json.loads(json.dumps(body))
    requested = take_constraint(body, ConstraintDefaults(), "hermes")
    assert isinstance(requested, Requested)
    found = resolve(requested.spec, Limits(), "tokenizer")
    grammar = ReadyGrammar(requested.spec, "key", "xgrammar", "key", warnings=found.warnings)
    pointers = {warning.pointer for warning in warnings_of(grammar, requested)}
    for pointer in pointers:
        if pointer.startswith("/tools"):
            assert value_at(asked, pointer) == 3
    return pointers


@pytest.mark.parametrize("inner", WORD)
@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "f1"}}])
def test_a_warning_of_a_tool_points_into_the_request(choice: Any, inner: str) -> None:
    assert _warned({"tools": _tools(GOOD, WORD[inner]), "tool_choice": choice}) == {f"/tools/1/function/parameters{inner}"}


def test_a_warning_of_the_answer_beside_tools_points_into_its_own_schema() -> None:
    answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ODD}}
    assert _warned({"tools": _tools(GOOD), "response_format": answer}) == {"/properties/a/maxlength"}
