"""Parses streamed tool calls of `tool_choice: required` incrementally: an array of `{"name": …, "parameters": …}` (vLLM 0.32:
`tool_parsers/streaming.py`). vLLM scans the whole answer again with each token, which takes 1 ms for 32,000 characters."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from vllm.parser import abstract_parser
from vllm.renderers.chat_utils import make_tool_call_id

CACHED_SCANS = 4096
"""Texts. A stream needs only its latest one, so that each of 256 streams may fall 16 tokens behind."""
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


class RequiredToolCallStreams:
    """Keeps the parser's state by text: streams with the same text share it."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[int, int], ToolCallScan] = OrderedDict()

    def extract(
        self, *, previous_text: str, current_text: str | None, tool_call_idx: int | None, tool_call_id_type: str
    ) -> tuple[DeltaMessage | None, bool]:
        """The new part of the calls, and whether any call has been announced; as vLLM's function of that name."""
        if not current_text:
            return None, False
        before = self._scans.get(_key(previous_text)) or ToolCallScan().extended(previous_text)
        now = before.extended(current_text)
        self._scans[_key(current_text)] = now
        if len(self._scans) > CACHED_SCANS:
            self._scans.popitem(last=False)
        told, calls = before.ready, list[DeltaToolCall]()
        for index, span in enumerate(now.spans[: now.ready]):
            end = len(current_text) if span.end is None else span.end
            if index >= told:
                number = None if tool_call_idx is None else tool_call_idx + len(calls)
                id_ = make_tool_call_id(id_type=tool_call_id_type, func_name=span.name, idx=number)
                function = DeltaFunctionCall(name=span.name, arguments=current_text[span.start : end])
                calls.append(DeltaToolCall(id=id_, type="function", index=index, function=function))
            elif more := current_text[min(end, len(previous_text)) : end]:
                calls.append(DeltaToolCall(index=index, function=DeltaFunctionCall(name=None, arguments=more)))
        return (DeltaMessage(tool_calls=calls) if calls else None), now.ready > 0


def _key(text: str) -> tuple[int, int]:
    return len(text), hash(text)


def replace_required_tool_call_streaming() -> None:
    """Replaces vLLM's function in this process."""
    abstract_parser.extract_required_tool_call_streaming = RequiredToolCallStreams().extract
