"""Streams of calls with `tool_choice: required`, whose answer is an array of `{"name": …, "parameters": …}` (vLLM 0.32:
`tool_parsers/streaming.py`). vLLM reads all of the answer again with each token, character by character: 1.6 ms for 32,000 of them."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from vllm.parser import abstract_parser
from vllm.renderers.chat_utils import make_tool_call_id

REMEMBERED = 4096
"""Streams: more than an engine has at a time."""
ELEMENT = 2
"""How deep a call's members stand."""


@dataclass(frozen=True, slots=True)
class Span:
    """A call: its name once that is whole, and where its parameters begin and end."""

    name: str | None = None
    start: int | None = None
    end: int | None = None

    @property
    def is_ready(self) -> bool:
        return self.name is not None and self.start is not None


@dataclass(slots=True)
class Scan:
    """How far an answer has been read. `spans` are its calls; of the member that is being read, `value` is where its value begins, and
    `has_ended` whether that is whole."""

    length: int = 0
    spans: list[Span] = field(default_factory=list)
    depth: int = 0
    is_over: bool = False
    string: int | None = None
    is_escaped: bool = False
    key: str | None = None
    has_colon: bool = False
    value: int | None = None
    has_ended: bool = False

    def advanced(self, text: str) -> Scan:
        """With what `text` has beyond what was read of it."""
        new = replace(self, spans=list(self.spans))
        for place in range(self.length, len(text)):
            if new.is_over:
                break
            new._read(text, place)
        new.length = len(text)
        return new

    @property
    def ready(self) -> int:
        """So many calls, the first ones, can be told."""
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
        elif self.depth == ELEMENT:
            self._read_between(text, place)

    def _read_in_string(self, text: str, place: int) -> None:
        if self.is_escaped:
            self.is_escaped = False
        elif text[place] == "\\":
            self.is_escaped = True
        elif text[place] == '"':
            begin, self.string = self.string, None
            assert begin is not None
            if self.depth == ELEMENT and self.key is None:
                self.key = text[begin + 1 : place]
            elif self.depth == ELEMENT and self.value == begin:
                self._end_value(text, place + 1)

    def _open(self, character: str, place: int) -> None:
        self.is_over = self.depth < ELEMENT and character != "[{"[self.depth]
        self._begin_value(place)
        self.depth += 1
        if self.depth == ELEMENT:
            self.spans.append(Span())
            self._begin_member()

    def _close(self, text: str, place: int) -> None:
        if self.depth == ELEMENT:
            self._end_value(text, place)
        self.depth -= 1
        if self.depth == ELEMENT:
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
        if self.depth == ELEMENT and self.has_colon and self.value is None:
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
            except ValueError:  # then it is no call
                return


class RequiredCalls:
    """Remembers by its text how far each stream was read; streams alike may share that."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[int, int], Scan] = OrderedDict()

    def extract(
        self, *, previous_text: str, current_text: str | None, tool_call_idx: int | None, tool_call_id_type: str
    ) -> tuple[DeltaMessage | None, bool]:
        """What of the calls is new, and whether one has been told of."""
        if not current_text:
            return None, False
        before = self._scans.get(_key(previous_text)) or Scan().advanced(previous_text)
        now = before.advanced(current_text)
        self._scans[_key(current_text)] = now
        if len(self._scans) > REMEMBERED:
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


def read_required_calls_once() -> None:
    """In place of vLLM's own function."""
    abstract_parser.extract_required_tool_call_streaming = RequiredCalls().extract
