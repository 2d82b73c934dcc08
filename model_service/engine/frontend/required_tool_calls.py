"""Parses streamed tool calls of `tool_choice: required` incrementally: an array of `{"name": …, "parameters": …}` (vLLM 0.32:
`parser/abstract_parser.py`, `tool_parsers/streaming.py`).

vLLM scans the whole answer again with each token, which takes 1 ms for 32,000 characters. And of the parsers that are made of its parser
engine (Qwen3-Coder, DeepSeek V3.2, Kimi K2 and eight more) it scans each piece alone, so that no call is ever found in a stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from vllm.parser.abstract_parser import DelegatingParser
from vllm.renderers.chat_utils import make_tool_call_id

_STREAM = "_maskcast_required_calls"
_STREAMED = "previous_text current_text delta_text previous_token_ids current_token_ids delta_token_ids request".split()
CALL_DEPTH = 2
"""The nesting of a call's members: in an object of the array."""


@dataclass(frozen=True, slots=True)
class ToolCallSpan:
    """A tool call: its name, None while that is incomplete, and the offsets of its parameters in the text."""

    name: str | None = None
    start: int | None = None
    end: int | None = None

    @property
    def is_ready(self) -> bool:
        return self.name is not None and self.start is not None


@dataclass(slots=True)
class ToolCallScan:
    """The parser's state after `length` characters. Of the current member, `value` is the offset of its value, and `has_ended` says whether
    that is complete."""

    length: int = 0
    spans: list[ToolCallSpan] = field(default_factory=list)
    depth: int = 0
    is_over: bool = False
    string: int | None = None
    is_escaped: bool = False
    key: str | None = None
    has_colon: bool = False
    value: int | None = None
    has_ended: bool = False

    def extended(self, text: str) -> ToolCallScan:
        """The state after all of `text`, which begins with what was parsed before."""
        new = replace(self, spans=list(self.spans))
        for place in range(self.length, len(text)):
            if new.is_over:
                break
            new._read(text, place)
        new.length = len(text)
        return new

    @property
    def ready(self) -> int:
        """How many calls, from the first one, have a name and the beginning of their parameters."""
        return next((number for number, span in enumerate(self.spans) if not span.is_ready), len(self.spans))

    def _read(self, text: str, place: int) -> None:
        character = text[place]
        if self.string is not None:
            self._read_in_string(text, place)
        elif character == '"':
            self.string = place
            self._begin_value(place)
        elif character in "[{":
            self._open(character, place)
        elif character in "]}":
            self._close(text, place)
        elif self.depth == CALL_DEPTH:
            self._read_between(text, place)

    def _read_in_string(self, text: str, place: int) -> None:
        if self.is_escaped:
            self.is_escaped = False
        elif text[place] == "\\":
            self.is_escaped = True
        elif text[place] == '"':
            begin, self.string = self.string, None
            assert begin is not None
            if self.depth == CALL_DEPTH and self.key is None:
                self.key = text[begin + 1 : place]
            elif self.depth == CALL_DEPTH and self.value == begin:
                self._end_value(text, place + 1)

    def _open(self, character: str, place: int) -> None:
        self.is_over = self.depth < CALL_DEPTH and character != "[{"[self.depth]
        self._begin_value(place)
        self.depth += 1
        if self.depth == CALL_DEPTH:
            self.spans.append(ToolCallSpan())
            self._begin_member()

    def _close(self, text: str, place: int) -> None:
        if self.depth == CALL_DEPTH:
            self._end_value(text, place)
        self.depth -= 1
        if self.depth == CALL_DEPTH:
            self._end_value(text, place + 1)
        self.is_over = self.depth <= 0

    def _read_between(self, text: str, place: int) -> None:
        character = text[place]
        if character == ",":
            self._end_value(text, place)
            self._begin_member()
        elif character.isspace():
            self._end_value(text, place)
        elif character == ":" and self.key is not None and not self.has_colon:
            self.has_colon = True
        else:
            self._begin_value(place)

    def _begin_member(self) -> None:
        self.key, self.has_colon, self.value, self.has_ended = None, False, None, False

    def _begin_value(self, place: int) -> None:
        if self.depth == CALL_DEPTH and self.has_colon and self.value is None:
            self.value = place
            if self.key == "parameters":
                self.spans[-1] = replace(self.spans[-1], start=place)

    def _end_value(self, text: str, place: int) -> None:
        if self.value is None or self.has_ended:
            return
        self.has_ended = True
        if self.key == "parameters":
            self.spans[-1] = replace(self.spans[-1], end=place)
        elif self.key == "name" and text[self.value] == '"':
            try:
                self.spans[-1] = replace(self.spans[-1], name=json.loads(text[self.value : place]))
            except ValueError:  # no valid name: never announced
                return


@dataclass(slots=True)
class RequiredToolCallStream:
    """The text of one stream so far, and what stands in it."""

    text: str = ""
    scan: ToolCallScan = field(default_factory=ToolCallScan)

    def extract(self, delta_text: str, tool_call_idx: int | None, tool_call_id_type: str) -> tuple[DeltaMessage | None, bool]:
        """The new part of the calls, and whether any call has been announced; as vLLM's `extract_required_tool_call_streaming`."""
        if not delta_text:
            return None, self.scan.ready > 0
        told, begin = self.scan.ready, len(self.text)
        self.text += delta_text
        self.scan = self.scan.extended(self.text)
        calls = list[DeltaToolCall]()
        for index, span in enumerate(self.scan.spans[: self.scan.ready]):
            end = len(self.text) if span.end is None else span.end
            if index >= told:
                number = None if tool_call_idx is None else tool_call_idx + len(calls)
                id_ = make_tool_call_id(id_type=tool_call_id_type, func_name=span.name, idx=number)
                function = DeltaFunctionCall(name=span.name, arguments=self.text[span.start : end])
                calls.append(DeltaToolCall(id=id_, type="function", index=index, function=function))
            elif more := self.text[min(end, begin) : end]:
                calls.append(DeltaToolCall(index=index, function=DeltaFunctionCall(name=None, arguments=more)))
        return (DeltaMessage(tool_calls=calls) if calls else None), self.scan.ready > 0


def streamed_arguments(arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """By name, those of a `_extract_tool_calls_streaming`: some of vLLM's parsers call it with them in their order."""
    return {**dict(zip(_STREAMED, arguments, strict=False)), **named}


def replace_required_tool_call_streaming() -> None:
    """For all parsers of this process, of which each stream has one."""
    extract = DelegatingParser._extract_tool_calls_streaming

    def extract_tool_calls_streaming(parser: DelegatingParser, *arguments: Any, **named: Any) -> tuple[DeltaMessage | None, bool]:
        told = streamed_arguments(arguments, named)
        if told["request"].tool_choice == "required" and parser._tool_parser.supports_required_and_named:
            stream: RequiredToolCallStream = parser.__dict__.setdefault(_STREAM, RequiredToolCallStream())
            return stream.extract(told["delta_text"], told["tool_call_idx"], told["tool_call_id_type"])
        found: tuple[DeltaMessage | None, bool] = extract(parser, **told)
        return found

    DelegatingParser._extract_tool_calls_streaming = extract_tool_calls_streaming
