"""Constrained answers of Kimi K3 in the channel `response` (vLLM 0.32: `parser/kimi_k3.py`, `reasoning/kimi_k3_reasoning_parser.py`).

vLLM looks for the marks of channels anywhere in the text, and takes those out that an answer's strings spell; what it streams keeps the
marks where another model's parser reads the calls. A constrained answer has its marks at its ends.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall
from vllm.parser.kimi_k3 import KimiK3Parser
from vllm.reasoning.kimi_k3_reasoning_parser import KimiK3ReasoningParser

from model_service.engine.frontend.constrained_calls import is_constrained
from model_service.engine.frontend.parser_patches import has_no_calls

_THINK, _END_OF_THOUGHT = "<|open|>think<|sep|>", "<|close|>think<|sep|>"
_HEAD, _CLOSE = "<|open|>response<|sep|>", "<|close|>"
_TAIL = f"{_CLOSE}response<|sep|>{_CLOSE}message<|sep|>"


def content_of(text: str, is_whole: bool) -> str:
    """What stands in the channel, whose beginning may be in the prompt. Of a text that goes on, not what may be a mark."""
    if not is_whole and _HEAD.startswith(text):
        return ""
    inner = text.removeprefix(_HEAD)
    most = min(len(inner), len(_TAIL))
    held = next((length for length in range(most, 0, -1) if _TAIL.startswith(inner[-length:])), 0)
    return inner if is_whole and held < len(_CLOSE) else inner[: len(inner) - held]


def read_kimi_answers() -> None:
    """Replace how answers are read that have a constraint and no tools; and of all that have one, where the reasoning ends."""
    _read_reasoning()
    _read_whole()
    _read_streams()


def _read_reasoning() -> None:
    extract = KimiK3ReasoningParser.extract_reasoning

    @wraps(extract)
    def extract_reasoning(parser: KimiK3ReasoningParser, text: str, request: Any) -> tuple[str | None, str | None]:
        if not is_constrained(request):
            found: tuple[str | None, str | None] = extract(parser, text, request)
            return found
        if not parser._thinking_enabled:
            return None, text or None
        thought, mark, behind = text.partition(_END_OF_THOUGHT)
        if not mark and thought.startswith(_HEAD):
            return None, text
        return thought.partition(_THINK)[2] or thought or None, behind or None

    KimiK3ReasoningParser.extract_reasoning = extract_reasoning


def _read_whole() -> None:
    extract = KimiK3Parser._extract_tool_calls

    @wraps(extract)
    def extract_tool_calls(
        parser: KimiK3Parser, content: str | None, request: Any, enable_auto_tools: bool = False
    ) -> tuple[list[FunctionCall] | None, str | None]:
        if has_no_calls(request):
            return [], content_of(content or "", is_whole=True) or None
        found: tuple[list[FunctionCall] | None, str | None] = extract(parser, content, request, enable_auto_tools)
        return found

    KimiK3Parser._extract_tool_calls = extract_tool_calls


def _read_streams() -> None:
    extract, parse = KimiK3Parser._extract_tool_calls_streaming, KimiK3Parser.parse_delta

    @wraps(extract)
    def extract_tool_calls_streaming(
        parser: KimiK3Parser, previous_text: str, current_text: str, *told: Any, request: Any, **named: Any
    ) -> tuple[DeltaMessage | None, bool]:
        if has_no_calls(request):
            return _message(content_of(current_text, False)[len(content_of(previous_text, False)) :]), False
        found: tuple[DeltaMessage | None, bool] = extract(parser, previous_text, current_text, *told, request=request, **named)
        return found

    @wraps(parse)
    def parse_delta(parser: KimiK3Parser, *told: Any, finished: bool, **named: Any) -> DeltaMessage | None:
        request: Any = named["request"] if "request" in named else told[2]
        delta: DeltaMessage | None = parse(parser, *told, finished=finished, **named)
        state = parser._stream_state
        if not finished or not state.tool_call_text_started or not has_no_calls(request):
            return delta
        rest = content_of(state.previous_text, True)[len(content_of(state.previous_text, False)) :]
        if delta is None or not rest:
            return delta or _message(rest)
        delta.content = (delta.content or "") + rest
        return delta

    KimiK3Parser._extract_tool_calls_streaming = extract_tool_calls_streaming
    KimiK3Parser.parse_delta = parse_delta


def _message(content: str) -> DeltaMessage | None:
    return DeltaMessage(content=content) if content else None
