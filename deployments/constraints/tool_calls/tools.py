"""Tool choices as grammars, in the formats that vLLM's parsers read back (vLLM 0.32: `parser/abstract_parser.py`).

`required` is a JSON array of `{"name", "parameters"}` objects, a named tool is its bare arguments, and `auto` is free text
with tool calls in the model's own format (`tool_formats`). Where a parser does not read that JSON (`model_parsers`), forced calls have the
model's own format too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from deployments.constraints.json_writer import has_at_most, number_of_values, write_json
from deployments.constraints.model_parsers import WITHOUT_JSON_CALLS
from deployments.constraints.tool_calls.definitions import with_distinct_definitions
from deployments.constraints.tool_calls.formats import TOOL_FORMATS, ToolFormat
from deployments.constraints.tool_calls.places import Place, Places, TrackedSchemas
from deployments.constraints.tool_calls.references import with_base
from deployments.constraints.tool_calls.token_calls import OF_XML, READ_BY_SCHEMA
from deployments.constraints.tool_calls.xml_formats import XML_FORMATS
from deployments.errors import bad_request, over_limit
from grammar_service.schema.json_text import Json
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tags.arguments import Conversion, with_explicit_types
from grammar_service.tags.inlining import with_references_inlined
from grammar_service.warning import shortened

MAX_TOOL_VALUES = 50_000
"""JSON values in all tools of a request. Chat templates write tools with one call of `json.dumps`, which holds the interpreter's lock: for
14 ms with 50,000 numbers, and for 67 ms with as many as a body may have."""

_CONVERSIONS = {**{name: known.conversion for name, known in XML_FORMATS.items()}, **dict.fromkeys(OF_XML, Conversion.ALL_TYPES)}
"""What readers of arguments as XML make of their texts, by vLLM's names of the parsers."""


@dataclass(frozen=True)
class Tool:
    """One function tool; `schema` constrains its arguments."""

    name: str
    schema: dict[str, Any]
    strict: bool


@dataclass(frozen=True)
class ToolGrammar:
    """`places`: where the request's schemas are in it."""

    spec: GrammarSpec
    places: Places


def parse_tools(body: dict[str, Any], parser: str | None = None) -> list[Tool]:
    """Raises ApiError (400) that names the tool at fault. Definitions that clash are renamed in the body, and what the model's parser would
    miss is added there."""
    tools = body.get("tools")
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise bad_request("'tools' must be an array.", "tools")
    if not has_at_most(tools, MAX_TOOL_VALUES):
        raise over_limit("tools", f"The tools of a request may have {MAX_TOOL_VALUES:,} values in all.")
    body["tools"] = tools = with_distinct_definitions(tools)
    if (conversion := _CONVERSIONS.get(parser or "")) is not None:
        body["tools"] = tools = [_with_schema(tool, partial(with_explicit_types, conversion=conversion)) for tool in tools]
    parsed = [_parse_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if parser in READ_BY_SCHEMA:
        body["tools"] = _with_references_inlined(tools)
    twice, times = next(iter(Counter(tool.name for tool in parsed).most_common(1)), ("", 0))
    if times > 1:
        raise bad_request(f"Two tools are called {twice!r}; give each its own name.", "tools")
    return parsed


def _with_schema(tool: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The tool with what `change` makes of its schema, if it has one."""
    schema = _schema_of(tool)
    return tool if schema is None else {**tool, "function": {**tool["function"], "parameters": change(schema)}}


def _schema_of(tool: Any) -> dict[str, Any] | None:
    function: Any = tool.get("function") if isinstance(tool, dict) else None
    schema: Any = function.get("parameters") if isinstance(function, dict) else None
    return schema if isinstance(schema, dict) else None


def _with_references_inlined(tools: list[Any]) -> list[Any]:
    """For parsers and templates that follow no references. Raises ApiError: they would be too much with what these lead to."""
    viewed, left = list[Any](), MAX_TOOL_VALUES
    for tool in tools:
        viewed.append(tool)
        if (schema := _schema_of(tool)) is not None:
            seen, read = with_references_inlined(schema)
            viewed[-1] = {**tool, "function": {**tool["function"], "parameters": seen}}
            left -= read
        left -= number_of_values(viewed[-1], max(left, 0))
        if left < 0:
            raise over_limit("tools", f"The tools of a request may have {MAX_TOOL_VALUES:,} values in all, references followed.")
    return viewed


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


def named_grammar(tools: list[Tool], tool: Tool, whitespace: str) -> ToolGrammar:
    """Bare arguments of one of the tools."""
    return ToolGrammar(GrammarSpec(GrammarKind.JSON_SCHEMA, write_json(tool.schema), whitespace), {"": Place(tools.index(tool))})


def required_grammar(tools: list[Tool], parallel: bool, whitespace: str) -> ToolGrammar:
    """JSON of one call or more (`parallel`), or of exactly one."""
    tracked = TrackedSchemas()
    schema = _required_schema(tools, parallel, tracked)
    return ToolGrammar(GrammarSpec(GrammarKind.JSON_SCHEMA, write_json(schema), whitespace), tracked.places(schema))


def _required_schema(tools: list[Tool], parallel: bool, tracked: TrackedSchemas) -> dict[str, Any]:
    """Definitions that tools bring in their own `$defs` move to the root, under a name that no other tool shares."""
    definitions: dict[str, Any] = {}
    calls = [_call_schema(tool, index, definitions, tracked) for index, tool in enumerate(tools)]
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": calls[0] if len(calls) == 1 else {"anyOf": calls}}
    if not parallel:
        schema["maxItems"] = 1
    return {**schema, "$defs": definitions} if definitions else schema


def _call_schema(tool: Tool, index: int, definitions: dict[str, Any], tracked: TrackedSchemas) -> dict[str, Any]:
    arguments = _hoisted(tool.schema, index, definitions, tracked)
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "parameters": arguments},
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }


def _hoisted(schema: dict[str, Any], index: int, definitions: dict[str, Any], tracked: TrackedSchemas) -> Any:
    """The schema, which becomes a definition itself if it refers to anything, so that its references can be rebased."""
    name = f"tool{index}"
    rebased = with_base(schema, f"#/$defs/{name}")
    if rebased is schema:
        return tracked.track(schema, index)
    definitions[name] = tracked.track(rebased, index)
    return {"$ref": f"#/$defs/{name}"}


def auto_tag(tools: list[Tool], answer_schema: Any | None, parser: str | None, single: bool = False) -> ToolGrammar:
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
    tracked = TrackedSchemas()
    schemas: list[tuple[str, Json]] = [
        (tool.name, tracked.track(tool.schema, index) if tool.strict or answer_schema is not None else None)
        for index, tool in enumerate(tools)
    ]
    if answer_schema is None:
        return _tag(tool_format.text_with_calls(schemas, single), tracked)
    answer = {"type": "json_schema", "json_schema": tracked.track(answer_schema)}
    if tool_format.text_marks:
        answer["excludes"] = list(tool_format.text_marks)
    return _tag(tool_format.answer_or_calls(answer, schemas, single), tracked)


def forced_tag(tools: list[Tool], parser: str, single: bool, named: Tool | None = None) -> ToolGrammar:
    """Calls of these tools, or of the `named` one, and nothing else, all with valid arguments, in the model's own format. Raises ApiError:
    a name cannot be written there."""
    tool_format, tracked = TOOL_FORMATS[parser], TrackedSchemas()
    _check_names(tools, tool_format)
    chosen = [(index, tool) for index, tool in enumerate(tools) if named in (None, tool)]
    return _tag(tool_format.calls([(tool.name, tracked.track(tool.schema, index)) for index, tool in chosen], single), tracked)


def _check_names(tools: list[Tool], tool_format: ToolFormat) -> None:
    unnamed = next((index for index, tool in enumerate(tools) if not tool_format.writes(tool.name)), None)
    if unnamed is not None:
        place = f"tools[{unnamed}].function.name"
        shown = repr(shortened(tools[unnamed].name))
        raise bad_request(f"This model's calls cannot have the name {shown}: use letters, digits, '_', '-' and '.'.", place)


def _tag(answer: dict[str, Any], tracked: TrackedSchemas) -> ToolGrammar:
    tag = {"type": "structural_tag", "format": answer}
    return ToolGrammar(GrammarSpec(GrammarKind.STRUCTURAL_TAG, write_json(tag)), tracked.places(tag))
