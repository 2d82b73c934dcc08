"""Tool calls of Muse Glimmer in its own format (vLLM 0.32: `tool_parsers/muse_glimmer_tool_parser.py`,
`reasoning/muse_glimmer_reasoning_parser.py`).

An output begins behind `<|start|>assistant`, and is messages, each with whom it is for: the model itself (reasoning, any number of them), a
tool (a call), or the user (the answer, which is the last one). The parsers go by the text, so that nothing else may spell the marks. Text
ahead of calls is not allowed, as in `harmony`.
"""

from __future__ import annotations

from collections.abc import Sequence

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, mark, sequence, text
from grammar_service.schema.json_text import Json
from grammar_service.tags.arguments import Conversion

PARSER = "muse_glimmer"
"""vLLM's name of both parsers that read it."""
_SELF, _USER = "self", "user"
_MARKS = ("<|e", "<|s", "<|m")
"""The beginnings of `<|eom|>` and `<|eot|>`, `<|start|>`, `<|message|>`: short, since each of their characters costs compile time."""
_NEXT = mark("<|eom|>"), mark("<|start|>"), text("assistant")


def _header(recipient: str) -> Format:
    """The beginning of a message: all ahead of its text."""
    return sequence(text(f" to={recipient}"), mark("<|message|>"))


def _free_text(*excluded: str) -> Format:
    return {**ANY_TOKENS, "excludes": [*_MARKS, *excluded]}


_REASONING: Format = {"type": "star", "content": sequence(_header(_SELF), _free_text(), *_NEXT)}


class MuseGlimmerFormat:
    """See `ToolFormat`."""

    text_marks: tuple[str, ...] = ("<|", "<atem")

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(_REASONING, _calls(tools, single))

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        # In a stream, text ends for the parser of reasoning where a call seems to begin.
        return self.answer_or_calls(_free_text("<atem:"), tools, single)

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(_REASONING, either(_calls(tools, single), sequence(_header(_USER), answer)))


def _calls(tools: Sequence[tuple[str, Json]], single: bool) -> Format:
    call = either(*(_call(name, schema) for name, schema in tools))
    return call if single else sequence(call, {"type": "star", "content": sequence(*_NEXT, call)})


def _call(name: str, schema: Json) -> Format:
    # A tool may have the name of another recipient. Behind a dot, it is one of a group of tools.
    recipient = f"{name}.{name}" if name in (_SELF, _USER) else name
    before, after = text(f'<atem:function_calls>\n<atem:invoke name="{name}">\n'), text("</atem:invoke>\n</atem:function_calls>")
    return sequence(_header(recipient), before, _arguments(schema), after)


def _arguments(schema: Json) -> Format:
    if schema is None:
        return {**ANY_TOKENS, "excludes": ["<|", "</atem:i"]}
    return {
        "type": "arguments",
        "json_schema": schema,
        "before_name": '<atem:parameter name="',
        "before_string": '">',
        "before_json": '">',
        "after_value": "</atem:parameter>\n",
        "excludes": ["<|", "</atem:"],
        "json_excludes": ["<|", "</a"],
        "conversion": Conversion.JSON_OR_STRING.value,
    }
