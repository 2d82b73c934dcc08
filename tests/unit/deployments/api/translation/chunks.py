"""Chat completions to translate: the same answers, whole and as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

USAGE = {
    "prompt_tokens": 7,
    "total_tokens": 12,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2, "closed_at_limit": 1},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
MESSAGE = {"role": "assistant", "reasoning": "hm, so", "content": "I look.", "tool_calls": [CALL]}


def whole(message: dict[str, Any], finish: str = "stop", **choice: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-0123",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}],
        "usage": USAGE,
    }


def streamed(message: dict[str, Any], finish: str = "stop", **choice: Any) -> Iterator[dict[str, Any]]:
    """Texts in two pieces each."""
    yield _chunk({"role": "assistant", "content": ""}, usage={"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0})
    for member in ("reasoning", "content"):
        text = message.get(member) or ""
        for piece in (text[:2], text[2:]):
            yield _chunk({member: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        yield _chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}]})
        for piece in (arguments[:3], arguments[3:]):
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk({}, finish, **choice)
    yield {"id": "chatcmpl-0123", "model": "m", "choices": [], "usage": USAGE}


def merged() -> Iterator[dict[str, Any]]:
    """A step of many tokens: the end of a call, a text and another call come in one chunk."""
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}
    second = {"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    yield _chunk({"tool_calls": [first]})
    yield _chunk({"content": "And", "tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}, second]}, "tool_calls")


def events(message: dict[str, Any], finish: str = "stop") -> list[str]:
    """As the gateway streams them, two events in a piece."""
    told = [f"data: {json.dumps(chunk)}\n\n" for chunk in streamed(message, finish)] + ["data: [DONE]\n\n"]
    return ["".join(told[start : start + 2]) for start in range(0, len(told), 2)]


def _chunk(delta: dict[str, Any], finish: str | None = None, usage: dict[str, Any] | None = None, **choice: Any) -> dict[str, Any]:
    told = {} if usage is None else {"usage": usage}
    return {"id": "chatcmpl-0123", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}], **told}
