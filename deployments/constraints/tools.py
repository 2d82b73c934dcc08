"""Tool choices as grammars, in the formats that vLLM's parsers read back (vLLM 0.32: `parser/abstract_parser.py`).

`required` is a JSON array of `{"name", "parameters"}` objects, a named tool is its bare arguments, and `auto` is free text
with tool calls in the model's own format (`tool_formats`). Where a parser does not read that JSON (`model_parsers`), forced calls have the
model's own format too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from deployments.constraints.json_writer import has_at_most, write_json
from deployments.constraints.model_parsers import WITHOUT_JSON_CALLS
from deployments.constraints.tool_definitions import with_distinct_definitions
from deployments.constraints.tool_formats import TOOL_FORMATS, ToolFormat
from deployments.constraints.tool_references import with_base
from deployments.errors import bad_request, over_limit
from grammar_service.schema.json_text import Json
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import shortened

MAX_TOOL_VALUES = 50_000
"""JSON values in all tools of a request. Chat templates write tools with one call of `json.dumps`, which holds the interpreter's lock: for
14 ms with 50,000 numbers, and for 67 ms with as many as a body may have."""


@dataclass(frozen=True)
class Tool:
    """One function tool; `schema` constrains its arguments."""

    name: str
    schema: dict[str, Any]
    strict: bool


def parse_tools(body: dict[str, Any]) -> list[Tool]:
    """Raises ApiError (400) that names the tool at fault. Definitions that clash are renamed in the body."""
    tools = body.get("tools")
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise bad_request("'tools' must be an array.", "tools")
    if not has_at_most(tools, MAX_TOOL_VALUES):
        raise over_limit("tools", f"The tools of a request may have {MAX_TOOL_VALUES:,} values in all.")
    body["tools"] = tools = with_distinct_definitions(tools)
    parsed = [_parse_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    twice, times = next(iter(Counter(tool.name for tool in parsed).most_common(1)), ("", 0))
    if times > 1:
        raise bad_request(f"Two tools are called {twice!r}; give each its own name.", "tools")
    return parsed


def _parse_tool(tool: Any, place: str) -> Tool:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise bad_request("A tool must be an object of type 'function' with a 'function' object.", place)
    name, schema = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise bad_request("A function must have a name.", f"{place}.function.name")
    if not isinstance(schema, dict | None):
        raise bad_request("'parameters' must be a JSON Schema object.", f"{place}.function.parameters")
    return Tool(name, schema or {"type": "object", "properties": {}, "additionalProperties": False}, function.get("strict") is True)


def chosen_tool(tools: list[Tool], choice: Any) -> Tool:
    """The tool that a named `tool_choice` means."""
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    for tool in tools:
        if tool.name == name:
            return tool
    shown = repr(shortened(choice)) if isinstance(choice, str) else "this"
    raise bad_request(f"'tool_choice' must be 'none', 'auto', 'required' or name one of the tools; {shown} does not.", "tool_choice")


def required_schema(tools: list[Tool], parallel: bool) -> str:
    """A JSON Schema for one call or more (`parallel`), or for exactly one.

    Definitions that tools bring in their own `$defs` move to the root, under a name that no other tool shares.
    """
    definitions: dict[str, Any] = {}
    calls = [_call_schema(tool, index, definitions) for index, tool in enumerate(tools)]
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": calls[0] if len(calls) == 1 else {"anyOf": calls}}
    if not parallel:
        schema["maxItems"] = 1
    return write_json({**schema, "$defs": definitions} if definitions else schema)


def _call_schema(tool: Tool, index: int, definitions: dict[str, Any]) -> dict[str, Any]:
    arguments = _hoisted(tool.schema, f"tool{index}", definitions)
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "parameters": arguments},
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }


def _hoisted(schema: dict[str, Any], prefix: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema, which becomes a definition itself if it refers to anything, so that its references can be rebased."""
    rebased = with_base(schema, f"#/$defs/{prefix}")
    if rebased is schema:
        return schema
    definitions[prefix] = rebased
    return {"$ref": f"#/$defs/{prefix}"}


def auto_tag(tools: list[Tool], answer_schema: Any | None, parser: str | None, single: bool = False) -> GrammarSpec:
    """Free text (or JSON of `answer_schema`) in which every tool call is one of the tools with valid arguments; at most one call where it
    is to be `single`.

    Raises:
        ApiError: the model's tool call format is not known here, so that strictness could not be enforced.
    """
    tool_format = TOOL_FORMATS.get(parser or "")
    if tool_format is None:
        advice = "Leave 'strict' out" if parser in WITHOUT_JSON_CALLS else "Use tool_choice 'required', or name the tool"
        raise bad_request(
            f"Strict tools with tool_choice 'auto' are enforced for the tool call formats {', '.join(TOOL_FORMATS)}; this model "
            f"{f'uses {parser!r}' if parser else 'has none that is known here (model.tool_call_parser)'}. {advice}.",
            "tools",
        )
    _check_names(tools, tool_format)
    schemas: list[tuple[str, Json]] = [
        (tool.name, tool.schema if tool.strict or answer_schema is not None else {"type": "object"}) for tool in tools
    ]
    if answer_schema is None:
        answer = tool_format.text_with_calls(schemas, single)
    else:
        answer = {"type": "or", "elements": [tool_format.calls(schemas, single), {"type": "json_schema", "json_schema": answer_schema}]}
    return _tag(answer)


def forced_tag(tools: list[Tool], parser: str, single: bool) -> GrammarSpec:
    """Calls of these tools and nothing else, all with valid arguments, in the model's own format. Raises ApiError: a name cannot be
    written there."""
    tool_format = TOOL_FORMATS[parser]
    _check_names(tools, tool_format)
    return _tag(tool_format.calls([(tool.name, tool.schema) for tool in tools], single))


def _check_names(tools: list[Tool], tool_format: ToolFormat) -> None:
    unnamed = next((index for index, tool in enumerate(tools) if not tool_format.writes(tool.name)), None)
    if unnamed is not None:
        place = f"tools[{unnamed}].function.name"
        raise bad_request("In this model's tool call format a name has letters, digits, '_', '-' and '.'.", place)


def _tag(answer: dict[str, Any]) -> GrammarSpec:
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, write_json({"type": "structural_tag", "format": answer}))
