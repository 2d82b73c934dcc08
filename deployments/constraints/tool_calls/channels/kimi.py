"""Tool calls of Kimi K3 in its own format (vLLM 0.32: `tool_parsers/kimi_k3_tool_parser.py`, which looks for the marks in the text).

An answer is a channel `response` with its text, then a channel `tools` with its calls, if there are any. The beginning of `response` may be
in the prompt. Each argument has its type beside it: strings are written as they are, all else is JSON. The parser takes marks that are
spelled in a text for those that they spell, so that no text has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import Format, either, sequence, text, token
from grammar_service.schema.json_text import Json

REASONING_PARSER = TOOL_PARSER = "kimi_k3"
"""vLLM's names of the parsers that read it."""
_OPEN, _CLOSE, _SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"
_TEXT: Format = {"type": "any_tokens", "excludes": [_OPEN, _CLOSE]}
_IN_JSON = ["<|"]
"""Short, since each character costs compile time; in JSON, what stands there can be written with an escape."""
_MEMBERS: dict[str, Any] = {
    "before_name": f'{_OPEN}argument key="',
    "before_string": f'" type="string"{_SEPARATOR}',
    "before_json": f'" type="{{type}}"{_SEPARATOR}',
    "after_value": f"{_CLOSE}argument{_SEPARATOR}",
    "excludes": [_OPEN, _CLOSE],
    "json_excludes": _IN_JSON,
    "conversion": "written_types",
    "marks": [_OPEN, _CLOSE, _SEPARATOR],
}


def _optional(content: Format) -> Format:
    return {"type": "optional", "content": content}


def _begin(*header: Format) -> Format:
    return sequence(token(_OPEN), *header, token(_SEPARATOR))


def _end(name: str) -> Format:
    return sequence(token(_CLOSE), text(name), token(_SEPARATOR))


class KimiChannels:
    """See `ToolFormat`."""

    text_marks: tuple[str, ...] = ()

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return _message(sequence(_end("response"), _calls(tools, single)))

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return _message(sequence(_TEXT, _end("response"), _optional(_calls(tools, single))))

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        response = sequence({**answer, "excludes": _IN_JSON}, _end("response"))
        return _message(either(sequence(_end("response"), _calls(tools, single)), response))


def _message(content: Format) -> Format:
    return sequence(_optional(_begin(text("response"))), content, _optional(_end("message")))


def _calls(tools: Sequence[tuple[str, Json]], single: bool) -> Format:
    call = either(*(_call(name, schema, single) for name, schema in tools))
    return sequence(_begin(text("tools")), call if single else {"type": "plus", "content": call}, _end("tools"))


def _call(name: str, schema: Json, single: bool) -> Format:
    index = text("1") if single else {"type": "regex", "pattern": "[1-9][0-9]{0,2}"}
    arguments = _ANY_ARGUMENTS if schema is None else {"type": "arguments", "json_schema": schema, **_MEMBERS}
    return sequence(_begin(text(f'call tool="{name}" index="'), index, text('"')), arguments, _end("call"))


_KEY: Format = {"type": "regex", "pattern": r'[^"<>\s]+'}
_TYPE: Format = {"type": "regex", "pattern": "string|number|boolean|null|object|array"}
_ANY_ARGUMENTS: Format = {
    "type": "star",
    "content": sequence(_begin(text('argument key="'), _KEY, text('" type="'), _TYPE, text('"')), _TEXT, _end("argument")),
}
