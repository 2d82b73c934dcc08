"""The constraint of a request: found among the forms that clients use, at most one, as a `GrammarSpec`.

Forms: OpenAI's `response_format` and `tools`, vLLM's `structured_outputs` and its older `guided_*` fields, the fields of SGLang and
llama.cpp, and what other servers accept as a `response_format`; or the name of a registered grammar. What is here is taken out of the
body: the engine must not see a constraint that it might read in another way, or drop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deployments.constraints.defaults import ANNOTATE, ANY, DECLARED, ENFORCE, REFUSE, WARN, ConstraintDefaults
from deployments.constraints.json_shape import check_json_text
from deployments.constraints.json_writer import write_json
from deployments.constraints.model_parsers import check_template, forces_json_calls
from deployments.constraints.specs import SPECS, text_of
from deployments.constraints.tool_calls.channels import harmony, kimi
from deployments.constraints.tool_calls.places import Places, place_in_request, pointer_in_request
from deployments.constraints.tool_calls.tools import (
    Tool,
    ToolGrammar,
    auto_tag,
    chosen_tool,
    forced_tag,
    named_grammar,
    parse_tools,
    required_grammar,
)
from deployments.errors import ApiError, bad_request, translated
from grammar_service.errors import GrammarError, MaskcastError
from grammar_service.messages import ReadyGrammar
from grammar_service.spec import HARMONY, KIMI_K3, SCHEMA_KINDS, GrammarKind, GrammarSpec, indent_of
from grammar_service.warning import ConstraintWarning

FIELDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
OPTIONS = (
    *("whitespace", "disable_any_whitespace", "disable_additional_properties", "property_order", "unknown_keywords", "format", "canonical"),
    "compile_deadline_s",
)
NAME = "grammar_id"
_NO_CONSTRAINT = f"'structured_outputs' must have one of: {', '.join((*FIELDS, NAME))}; or options for a constraint in another field."
LEAST_DEADLINE_S, MOST_DEADLINE_S = 0.1, 3600.0
"""Of a compile: less would only have warm compilers killed that others need; more the compile pool grants nobody."""
PLAIN = {
    # vLLM before `structured_outputs`
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "structural_tag": "structural_tag",
    # SGLang, llama.cpp
    "json_schema": "json",
    "regex": "regex",
    "ebnf": "ebnf",
    "grammar": "grammar",
}
"""Fields of the request that are a constraint by themselves, and what they hold."""
GUIDED_HINTS = ("guided_decoding_backend",)  # chose an engine, not a language: nothing is lost without it
FORMATS = ("text", "json_object", "json_schema", "json", "regex", "grammar", "structural_tag")
HOLDING = ("json_schema", "schema", "value", "pattern", "regex", "grammar", NAME)
"""What a `response_format` may hold a constraint in: each is read, or refused."""
REFUSED = {
    "guided_whitespace_pattern": "Use structured_outputs.whitespace: 'flexible', 'standard', 'compact' or 'indent:N'.",
    "functions": "Use 'tools'.",
    "function_call": "Use 'tool_choice'.",
}
FIELDS_OF_CONSTRAINTS = ("response_format", "structured_outputs", *PLAIN, *GUIDED_HINTS, *REFUSED)
"""Fields of a request that are taken out of it here, beside its tools."""


FORMAT = "response_format"
"""The field in which a text's format comes. Clients send it beside a tool that must be called, too."""


@dataclass(frozen=True)
class Requested:
    """A constraint, and the field that it came in (for error messages); `deadline_s` bounds its compile, None: as the pool does.
    `places`: where the schemas of the tools that it was made of are in it, and the one in `field`, if that is another one; None: it is as
    the request has it."""

    spec: GrammarSpec
    field: str
    deadline_s: float | None = None
    places: Places | None = None


@dataclass(frozen=True)
class NamedGrammar:
    """A registered grammar by its name, which has still to be looked up, and the field that it came in."""

    id: str
    field: str


def refusal(error: MaskcastError, requested: Requested | NamedGrammar | None) -> ApiError:
    """What the client sees of an error of its constraint: the field, and the place in it, are the request's."""
    seen = translated(error, requested.field if requested else None)
    places = requested.places if isinstance(requested, Requested) else None
    if requested is not None and places is not None and isinstance(error, GrammarError) and error.pointer is not None:
        seen.param = place_in_request(error.pointer, requested.field, places)
    return seen


def warnings_of(grammar: ReadyGrammar, requested: Requested | NamedGrammar | None) -> Sequence[ConstraintWarning]:
    """What the client is told of its constraint, with places in the request where it was made of tools."""
    if not isinstance(requested, Requested) or (places := requested.places) is None:
        return grammar.warnings
    return [replace(warning, pointer=pointer_in_request(warning.pointer, places)) for warning in grammar.warnings]


def take_constraint(body: dict[str, Any], defaults: ConstraintDefaults, tool_parser: str | None) -> Requested | NamedGrammar | None:
    """Remove the constraint fields from `body` and say what they ask for.

    Raises:
        ApiError: a form is malformed, two constraints contradict, or a field is one that nobody would enforce.
    """
    for name, advice in REFUSED.items():
        if body.get(name) is not None:
            raise bad_request(f"'{name}' is not supported. {advice}", name, "unsupported_parameter")
    options = _options_alone(body.get("structured_outputs"))
    defaults, whitespace = _chosen(body.get("structured_outputs"), defaults), _whitespace(options, defaults.whitespace)
    found = [*_response_format(body, whitespace), *_structured_outputs(body, whitespace), *_plain(body, whitespace)]
    tools = parse_tools(body, tool_parser)
    if len(found) > 1:
        raise _conflict([requested.field for requested in found])
    chosen = _with_tools(body, tools, found[0] if found else None, whitespace, tool_parser)
    if isinstance(chosen, Requested) and chosen.places is not None:
        check_template(body, tool_parser)
    if options:
        chosen = _with_options(chosen, options)
    if not isinstance(chosen, Requested):
        return chosen
    # Parsers of tool calls read members as they are declared.
    return replace(chosen, spec=_as_chosen(chosen.spec, replace(defaults, any_order=defaults.any_order and chosen.places is None)))


def _options_alone(value: Any) -> dict[str, Any]:
    """Those of `structured_outputs` that has no constraint, for one that comes in another field."""
    given = _given(value, *value) if isinstance(value, dict) else []
    return {name: value[name] for name in given} if set(given) <= {*OPTIONS} else {}


def _with_options(chosen: Requested | NamedGrammar | None, options: dict[str, Any]) -> Requested:
    if chosen is None:
        raise bad_request(_NO_CONSTRAINT, "structured_outputs")
    if isinstance(chosen, NamedGrammar):
        raise _option_beside_name(next(iter(options)))
    return replace(chosen, deadline_s=_deadline(options))


def _as_chosen(spec: GrammarSpec, chosen: ConstraintDefaults) -> GrammarSpec:
    spec = replace(spec, canonical=chosen.canonical)
    if spec.kind not in SCHEMA_KINDS:
        return spec
    any_order = chosen.any_order and spec.kind is GrammarKind.JSON_SCHEMA
    return replace(spec, closed=chosen.closed, any_order=any_order, refuses_unknown=chosen.refuses_unknown, formats=chosen.formats)


def _chosen(options: Any, defaults: ConstraintDefaults) -> ConstraintDefaults:
    """How a constraint is read: as `structured_outputs` choose, or else by default."""
    if not isinstance(options, dict):
        return defaults
    closed, canonical = _flag(options, "disable_additional_properties"), _flag(options, "canonical")
    order = _one_of(options, "property_order", (DECLARED, ANY))
    unknown = _one_of(options, "unknown_keywords", (WARN, REFUSE))
    asserts = _one_of(options, "format", (ENFORCE, ANNOTATE))
    return replace(
        defaults,
        closed=defaults.closed if closed is None else closed,
        any_order=defaults.any_order if order is None else order == ANY,
        refuses_unknown=defaults.refuses_unknown if unknown is None else unknown == REFUSE,
        formats=defaults.formats if asserts is None else asserts == ENFORCE,
        canonical=defaults.canonical if canonical is None else canonical,
    )


def _flag(options: dict[str, Any], name: str) -> bool | None:
    value, field = options.get(name), f"structured_outputs.{name}"
    if not isinstance(value, bool | None):
        raise bad_request(f"'{field}' must be true or false.", field)
    return value


def _one_of(options: dict[str, Any], name: str, values: tuple[str, str]) -> str | None:
    value, field = options.get(name), f"structured_outputs.{name}"
    if value is not None and value not in values:
        raise bad_request(f"'{field}' must be {values[0]!r} or {values[1]!r}.", field)
    return value


def _conflict(fields: Sequence[str]) -> ApiError:
    return bad_request(f"The request has more than one constraint: {', '.join(fields)}. Keep one.", fields[-1], "conflicting_constraints")


def _response_format(body: dict[str, Any], whitespace: str) -> list[Requested | NamedGrammar]:
    value = body.pop("response_format", None)
    if value is None:
        return []
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in FORMATS:
        raise bad_request(f"'response_format.type' must be one of: {', '.join(map(repr, FORMATS))}.", "response_format.type")
    found = [] if kind == "text" else [_format(kind, value, whitespace)]
    read = {requested.field.split(".")[1] for requested in found if "." in requested.field}
    if kind != "structural_tag" and (ignored := [name for name in _given(value, *HOLDING) if name not in read]):
        field = f"response_format.{ignored[0]}"
        raise bad_request(f"'{field}' has no meaning beside the type {kind!r} and what else is there.", field, "conflicting_constraints")
    return found


def _format(kind: str, value: dict[str, Any], whitespace: str) -> Requested | NamedGrammar:
    match kind:
        case "json_object" if not _given(value, "schema", "value"):
            return Requested(GrammarSpec(GrammarKind.JSON_OBJECT, "", whitespace), "response_format")
        case "json_schema" if not _given(value, "schema", "value"):
            return _json_schema_format(value.get("json_schema"), whitespace)
        case "regex":
            return _format_of(value, "regex", whitespace, "pattern", "value")
        case "grammar" if value.get(NAME) is not None:
            return _named(value[NAME], f"response_format.{NAME}")
        case "grammar":
            return _format_of(value, "grammar", whitespace, "grammar")
        case "structural_tag":
            return Requested(GrammarSpec(GrammarKind.STRUCTURAL_TAG, write_json(value)), "response_format")
        case _:
            return _format_of(value, "json", whitespace, "schema", "value")


def _given(value: dict[str, Any], *names: str) -> list[str]:
    return [name for name in names if value.get(name) is not None]


def _format_of(value: dict[str, Any], plain: str, whitespace: str, *names: str) -> Requested:
    """A `response_format` that holds its constraint itself, under exactly one of the names that servers give it."""
    given = _given(value, *names)
    if len(given) != 1:
        field = f"response_format.{names[0]}"
        raise bad_request(f"'response_format' of type {value['type']!r} needs {' or '.join(map(repr, names))}.", field)
    field = f"response_format.{given[0]}"
    return Requested(SPECS[plain](value[given[0]], field, whitespace), field)


def _named(value: Any, field: str) -> NamedGrammar:
    if not isinstance(value, str) or not value:
        raise bad_request(f"'{field}' must be the name of a registered grammar.", field)
    return NamedGrammar(value, field)


def _json_schema_format(value: Any, whitespace: str) -> Requested:
    field = "response_format.json_schema.schema"
    schema = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(schema, dict | bool):
        raise bad_request("'response_format.json_schema.schema' must be a JSON Schema.", field)
    return Requested(GrammarSpec(GrammarKind.JSON_SCHEMA, write_json(schema), whitespace), field)


def _structured_outputs(body: dict[str, Any], whitespace: str) -> list[Requested | NamedGrammar]:
    value = body.pop("structured_outputs", None)
    if value is None:
        return []
    if not isinstance(value, dict):
        raise bad_request("'structured_outputs' must be an object.", "structured_outputs")
    if unknown := set(_given(value, *value)) - {*FIELDS, *OPTIONS, NAME}:
        name = min(unknown)
        raise bad_request(f"'structured_outputs.{name}' is not supported.", f"structured_outputs.{name}", "unsupported_parameter")
    chosen, deadline_s = _whitespace(value, whitespace), _deadline(value)
    found: list[Requested | NamedGrammar] = [
        Requested(SPECS[name](value[name], f"structured_outputs.{name}", chosen), f"structured_outputs.{name}", deadline_s)
        for name in FIELDS
        if value.get(name) is not None
    ]
    if value.get(NAME) is not None:
        found.append(_name_alone(value))
    if not found and not _options_alone(value):
        raise bad_request(_NO_CONSTRAINT, "structured_outputs")
    return found


def _name_alone(value: dict[str, Any]) -> NamedGrammar:
    named = _named(value[NAME], f"structured_outputs.{NAME}")
    if option := next((name for name in OPTIONS if value.get(name) is not None), None):
        raise _option_beside_name(option)
    return named


def _option_beside_name(option: str) -> ApiError:
    field = f"structured_outputs.{option}"
    return bad_request(f"'{field}' is chosen where the grammar is registered.", field, "conflicting_constraints")


def _whitespace(value: dict[str, Any], default: str) -> str:
    asked = value.get("whitespace")
    if asked is None:
        return "compact" if value.get("disable_any_whitespace") is True else default
    try:
        indent_of(text_of(asked, "structured_outputs.whitespace"))
    except ValueError as error:
        raise bad_request(str(error), "structured_outputs.whitespace") from None
    return str(asked)


def _deadline(value: dict[str, Any]) -> float | None:
    asked = value.get("compile_deadline_s")
    if asked is None:
        return None
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not LEAST_DEADLINE_S <= asked < float("inf"):
        raise bad_request(
            f"'structured_outputs.compile_deadline_s' must be a number of seconds, {LEAST_DEADLINE_S:g} or more.",
            "structured_outputs.compile_deadline_s",
        )
    # Compared as it came: an integer may be too large to become a float.
    return float(min(asked, MOST_DEADLINE_S))


def _plain(body: dict[str, Any], whitespace: str) -> list[Requested]:
    for name in GUIDED_HINTS:
        body.pop(name, None)
    found = [
        Requested(SPECS[plain](value, name, whitespace), name)
        for name, plain in PLAIN.items()
        if (value := body.pop(name, None)) is not None
    ]
    if unknown := next((name for name in _given(body, *body) if name.startswith("guided_")), None):
        raise bad_request(f"'{unknown}' is not supported.", unknown, "unsupported_parameter")
    return found


def _with_tools(
    body: dict[str, Any], tools: list[Tool], requested: Requested | NamedGrammar | None, whitespace: str, tool_parser: str | None
) -> Requested | NamedGrammar | None:
    choice, single = body.get("tool_choice"), body.get("parallel_tool_calls") is False
    if not tools:
        if choice not in (None, "none", "auto"):
            raise bad_request("'tool_choice' needs 'tools'.", "tool_choice")
        return requested
    match choice:
        case "none":
            return requested
        case None | "auto":
            return _auto(tools, requested, tool_parser, single)
    if requested is not None and not requested.field.startswith(FORMAT):  # which is for a text, and there will be none
        raise _conflict([requested.field, "tool_choice"])
    named = None if choice == "required" else chosen_tool(tools, choice)
    if not forces_json_calls(tool_parser):
        return _of_tools(forced_tag(tools, tool_parser or "", single or named is not None, named))
    if named is None:
        return _of_tools(required_grammar(tools, not single, whitespace))
    return _of_tools(named_grammar(tools, named, whitespace))


def _of_tools(grammar: ToolGrammar, field: str = "tools") -> Requested:
    return Requested(grammar.spec, field, places=grammar.places)


def _auto(tools: list[Tool], requested: Requested | NamedGrammar | None, tool_parser: str | None, single: bool) -> Requested | None:
    if requested is None:
        is_strict = any(tool.strict for tool in tools)
        return _of_tools(auto_tag(tools, None, tool_parser, single)) if is_strict else None
    if isinstance(requested, NamedGrammar) or requested.spec.kind not in (GrammarKind.JSON_SCHEMA, GrammarKind.JSON_OBJECT):
        raise bad_request(
            f"'{requested.field}' with tools and tool_choice 'auto' is not supported; set tool_choice to 'none' or leave the tools out.",
            "tool_choice",
            "conflicting_constraints",
        )
    is_any = requested.spec.kind is GrammarKind.JSON_OBJECT
    schema = {"type": "object"} if is_any else _parsed(requested.spec.text, requested.field)
    return _of_tools(auto_tag(tools, schema, tool_parser, single), requested.field)


def wrap_in_model_format(
    requested: Requested | NamedGrammar, reasoning_parser: str | None, tool_parser: str | None
) -> Requested | NamedGrammar:
    """A chat's constraint as one that holds where this model's answers stand. Raises ApiError: it cannot be kept there."""
    is_kimi = tool_parser == kimi.TOOL_PARSER or reasoning_parser == kimi.REASONING_PARSER
    if reasoning_parser != harmony.REASONING_PARSER and not is_kimi:
        return requested
    if isinstance(requested, NamedGrammar):
        message = f"'{requested.field}' cannot be kept in this model's channels: give the grammar itself."
        raise bad_request(message, requested.field, "unsupported_parameter")
    if requested.places is None:
        if requested.spec.canonical:
            message = "This model's answers cannot be 'canonical': its marks are special tokens."
            raise bad_request(message, requested.field, "unsupported_parameter")
        return replace(requested, spec=replace(requested.spec, channels=KIMI_K3 if is_kimi else HARMONY))
    needed = kimi.TOOL_PARSER if is_kimi else harmony.TOOL_PARSER
    if tool_parser != needed:
        raise bad_request(f"Tools of this model need the setting model.tool_call_parser: {needed}.", "tools", "unsupported_parameter")
    return requested


def _parsed(text: str, field: str) -> Any:
    """Raises ApiError: it is no JSON, or too much."""
    check_json_text(text, field)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise bad_request(f"'{field}' is not JSON, or nested too deep.", field) from None
