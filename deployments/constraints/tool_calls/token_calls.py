"""Tool calls that begin with a special token of their own, each behind the other, as the tool call parsers of vLLM (0.32) that bear these
names read them back, those of XML with what is changed in them (`model_service/engine/frontend/constrained_calls.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, json_arguments, mark, sequence, text, token
from grammar_service.schema.json_text import Json

_NOTHING = text("")


def _tokens(*excluded: str) -> Format:
    """Text without these texts in it."""
    return {**ANY_TOKENS, "excludes": [*excluded]} if excluded else ANY_TOKENS


@dataclass(frozen=True)
class TokenCalls:
    """See `ToolFormat`. Calls stand behind all other text, between `before` and `after`, set apart by `separator`; `call` writes one, of a
    tool's name and its schema. Free text has none of the texts `excluded`."""

    call: Callable[[str, Json], Format]
    excluded: tuple[str, ...] = ()
    before: Format = field(default_factory=lambda: _NOTHING)
    after: Format = field(default_factory=lambda: _NOTHING)
    separator: Format | None = None

    text_marks: tuple[str, ...] = ()

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        call = either(*(self.call(name, schema) for name, schema in tools))
        return sequence(self.before, call if single else self._several(call), self.after)

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(_tokens(*self.excluded), {"type": "optional", "content": self.calls(tools, single)})

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return either(self.calls(tools, single), answer)

    def _several(self, call: Format) -> Format:
        """Each call once where it can be, since a tag may have so many formats."""
        if self.separator is None:
            return {"type": "plus", "content": call}
        return sequence(call, {"type": "star", "content": sequence(self.separator, call)})


def _mistral_call(name: str, schema: Json) -> Format:
    """Of models since the tokenizers of version 11 (`parser/mistral.py`). Older ones lack `[ARGS]`: their calls are an array, and with this
    format they get a 400 that says so."""
    return sequence(token("[TOOL_CALLS]"), text(name), token("[ARGS]"), json_arguments(schema))


_QUOTE = token('<|"|>')


def _gemma_call(name: str, schema: Json) -> Format:
    """Of Gemma 4 (`parser/gemma4.py`)."""
    arguments: Format = {"type": "literals", "json_schema": schema, "notation": "gemma4"}
    if schema is None:
        arguments = sequence(ANY_TOKENS, {"type": "star", "content": sequence(_QUOTE, ANY_TOKENS)})
    return sequence(token("<|tool_call>"), text(f"call:{name}{{"), arguments, text("}"), token("<tool_call|>"))


def _functiongemma_call(name: str, schema: Json) -> Format:
    """Of FunctionGemma (`functiongemma_tool_parser.py`)."""
    arguments: Format = {"type": "literals", "json_schema": {"type": "object"} if schema is None else schema, "notation": "functiongemma"}
    return sequence(mark("<start_function_call>"), text(f"call:{name}{{"), arguments, text("}"), mark("<end_function_call>"))


_THINKING = ("<think", "</think")
"""Marks of reasoning: with a reasoning parser, vLLM takes what is ahead of them for reasoning. All marks are short, since each of their
characters costs compile time."""
_NAME: Format = {"type": "regex", "pattern": r'[^<>"\s]+'}
_STEP_VALUE = ("</step", "<｜too", *_THINKING)
_STEP_ARGUMENTS: Format = {
    "before_name": '<steptml:parameter name="',
    "before_string": '">',
    "before_json": '">',
    "after_value": "</steptml:parameter>",
    "excludes": [*_STEP_VALUE],
    "json_excludes": ["</", "<｜", "<thi"],
    "marks": [],
}
_STEP_ARGUMENT = sequence(text('<steptml:parameter name="'), _NAME, text('">'), _tokens(*_STEP_VALUE), text("</steptml:parameter>"))
_MINICPM_VALUE = ("</func", *_THINKING)
_MINICPM_ARGUMENTS: Format = {
    "before_name": '<param name="',
    "before_string": '">',
    "before_json": '">',
    "after_value": "</param>",
    "excludes": [*_MINICPM_VALUE],
    "json_excludes": ["<"],
    "marks": ["<param", "</param>"],
    "cdata": True,
}
_SECTION = sequence(text("<![CDATA["), _tokens("]]>", *_MINICPM_VALUE), text("]]>"))
_MINICPM_ARGUMENT = sequence(mark("<param"), text(' name="'), _NAME, text('">'), either(_SECTION, _tokens("<")), mark("</param>"))


def _step_call(name: str, schema: Json) -> Format:
    """Of Step 3 (`step3_tool_parser.py`)."""
    head = sequence(mark("<｜tool_call_begin｜>"), text("function"), mark("<｜tool_sep｜>"), text(f'<steptml:invoke name="{name}">'))
    end = sequence(text("</steptml:invoke>"), mark("<｜tool_call_end｜>"))
    return sequence(head, _xml_arguments(schema, _STEP_ARGUMENTS, _STEP_ARGUMENT), end)


def _minicpm_call(name: str, schema: Json) -> Format:
    """Of MiniCPM 5 (`minicpm5xml_tool_parser.py`), on a line of its own."""
    head = sequence({"type": "regex", "pattern": r"\n?"}, mark("<function"), text(f' name="{name}">'))
    return sequence(head, _xml_arguments(schema, _MINICPM_ARGUMENTS, _MINICPM_ARGUMENT), mark("</function>"))


def _xml_arguments(schema: Json, written: Format, any_argument: Format) -> Format:
    if schema is None:
        return {"type": "star", "content": any_argument}
    return {"type": "arguments", "json_schema": schema, **written}


def _plamo_marks(*names: str) -> list[Format]:
    """Of PLaMo 3. Its vocabulary has the beginnings and the end of its marks as tokens."""
    sides = (one.partition(" ") for one in names)
    return [part for side, _, name in sides for part in (mark(f"<|plamo:{side}_"), text(name), mark(":plamo|>"))]


def _plamo_call(name: str, schema: Json) -> Format:
    """Of `parser/plamo3.py`. In whole answers, the parser takes out what is spelled like any special token of the model."""
    named = *_plamo_marks("begin tool_request", "begin tool_name"), text(name), *_plamo_marks("end tool_name", "begin tool_arguments")
    arguments = mark("<|plamo:constrain|>"), text("json"), mark("<|plamo:msg|>"), {**json_arguments(schema), "excludes": ["<|"]}
    return sequence(*named, *arguments, *_plamo_marks("end tool_arguments", "end tool_request"))


# Where Gemma's reasoning is not read, vLLM looks for marks in the text, and would find those that are spelled there.
TOKEN_FORMATS: dict[str, TokenCalls] = {
    "mistral": TokenCalls(_mistral_call, text_marks=("[TOOL_C",)),
    "gemma4": TokenCalls(_gemma_call, excluded=("<|tool",), text_marks=("<|tool",)),
    "functiongemma": TokenCalls(_functiongemma_call, excluded=("<start_f",), text_marks=("<start",)),
    "step3": TokenCalls(
        _step_call,
        excluded=("<｜too",),
        before=mark("<｜tool_calls_begin｜>"),
        after=mark("<｜tool_calls_end｜>"),
        text_marks=("<｜too",),
    ),
    "minicpm5": TokenCalls(_minicpm_call, excluded=("<func",), text_marks=("<func",)),
    "plamo3": TokenCalls(
        _plamo_call,
        excluded=("<|plamo:",),
        before=sequence(*_plamo_marks("begin tool_requests")),
        after=sequence(*_plamo_marks("end tool_requests")),
        text_marks=("<|pla",),
    ),
}
READ_BY_SCHEMA = frozenset({"gemma4"})
"""Those of arguments that are not JSON, whose parser goes by the tool's schema."""
OF_XML = frozenset({"step3", "minicpm5"})
"""Those of arguments as XML, of which values are made by the types that their schemas tell."""
