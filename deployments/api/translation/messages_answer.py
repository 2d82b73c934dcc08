"""Chat completions as answers of Anthropic's Messages API: whole, as a stream of events, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import from_json

from deployments.api.translation.values import Event, is_complete_json, split_calls
from deployments.errors import ApiError

_ERRORS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "overloaded_error",
    HTTPStatus.GATEWAY_TIMEOUT: "timeout_error",
}


def error_body(error: ApiError) -> dict[str, Any]:
    """With `code` and `param`, as in OpenAI's errors. Anthropic's clients ignore members that they do not know."""
    kind = _ERRORS.get(error.status) or ("invalid_request_error" if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message, "code": error.code, "param": error.param}}


class MessageAnswer:
    """The message of one request: whole, or in the events of a stream."""

    def __init__(self) -> None:
        self._is_open = False
        self._block: tuple[str, int] | None = None
        """The type of the block that is open, and which call it is."""
        self._index = -1
        self._arguments: list[str] | None = None
        """Of the last call, in pieces."""
        self._last: Mapping[str, Any] = {}
        self._usage = _usage(None)
        self._told: dict[str, Any] = {}
        """What the service tells of the answer once it is there."""

    def begin(self) -> Iterator[Event]:
        """A message begins with its first chunk, which tells the tokens of its prompt."""
        yield from ()

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """All of a chat completion that does not stream."""
        choice = answer["choices"][0]
        told = choice["message"]
        content = list[Any]()
        if told.get("reasoning"):
            content.append({"type": "thinking", "thinking": told["reasoning"], "signature": ""})
        if told.get("content"):
            content.append({"type": "text", "text": told["content"]})
        last: str | None = None
        for call in told.get("tool_calls") or ():
            function, last = call["function"], call["function"]["arguments"]
            content.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": _arguments(last)})
        reason, sequence = _stop(choice, last)
        return _message(answer, content, reason, sequence, _usage(answer.get("usage")))

    def of(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if chunk.get("usage"):
            self._usage = _usage(chunk["usage"])
        if self._is_open and "maskcast" in chunk:
            self._told = {"maskcast": chunk["maskcast"]}
        if not self._is_open:
            self._is_open = True
            yield {"type": "message_start", "message": _message(chunk, [], None, None, self._usage)}
        for choice in chunk.get("choices") or ():
            yield from self._delta(choice.get("delta") or {})
            if choice.get("finish_reason"):
                self._last = choice

    def end(self) -> Iterator[Event]:
        yield from self._end_of_block()
        reason, sequence = _stop(self._last, None if self._arguments is None else "".join(self._arguments))
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        yield {"type": "message_delta", "delta": delta, "usage": self._usage, **self._told}
        yield {"type": "message_stop"}

    def fail(self, error: ApiError) -> Iterator[Event]:
        yield error_body(error)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        open_call = self._block[1] if self._block and self._block[0] == "tool_use" else None
        more, others = split_calls(delta, open_call)
        for call in more:
            yield from self._call_piece(call)
        if thought := delta.get("reasoning"):
            yield from self._piece(
                ("thinking", 0), {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", thought
            )
        if text := delta.get("content"):
            yield from self._piece(("text", 0), {"type": "text", "text": ""}, "text_delta", "text", text)
        for call in others:
            yield from self._call_piece(call)

    def _call_piece(self, call: Mapping[str, Any]) -> Iterator[Event]:
        function, block = call.get("function") or {}, ("tool_use", call["index"])
        if block != self._block or self._arguments is None:
            self._arguments = []
        self._arguments.append(piece := function.get("arguments") or "")
        start: dict[str, Any] = {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": {}}
        yield from self._piece(block, start, "input_json_delta", "partial_json", piece)

    def _piece(self, block: tuple[str, int], start: Mapping[str, Any], kind: str, member: str, piece: str) -> Iterator[Event]:
        """More of a block; a new one starts where another one was open."""
        if block != self._block:
            yield from self._end_of_block()
            self._block = block
            self._index += 1
            yield {"type": "content_block_start", "index": self._index, "content_block": start}
        if piece:
            yield {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, member: piece}}

    def _end_of_block(self) -> Iterator[Event]:
        if self._block is not None:
            self._block = None
            yield {"type": "content_block_stop", "index": self._index}


class TokenCount(MessageAnswer):
    """The answer to a request that counts its tokens."""

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """All of what the tokenizer has made of the request."""
        return {"input_tokens": answer["count"]}


def _message(
    answer: Mapping[str, Any], content: list[Any], reason: str | None, sequence: str | None, usage: Mapping[str, Any]
) -> dict[str, Any]:
    told = {"maskcast": answer["maskcast"]} if "maskcast" in answer else {}
    return {
        "id": f"msg_{answer['id'].removeprefix('chatcmpl-')}",
        "type": "message",
        "role": "assistant",
        "model": answer["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": usage,
        **told,
    }


def _stop(choice: Mapping[str, Any], arguments: str | None) -> tuple[str, str | None]:
    """Why an answer ended, and the text that ended it. `arguments` are those of its last call: one that a text has cut off is not to be
    made."""
    why = choice.get("stop_reason")
    match choice.get("finish_reason"):
        case "length":
            return "max_tokens", None
        case "content_filter":
            return "refusal", None
        case _ if arguments is not None and (is_complete_json(arguments) or not isinstance(why, str)):
            return "tool_use", None
        case _ if isinstance(why, str):
            return "stop_sequence", why
        case _:
            return "end_turn", None


def _usage(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Anthropic counts tokens that were read from the cache beside those of the input, and not among them."""
    found = usage or {}
    cached = int((found.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    details = dict(found.get("completion_tokens_details") or {})
    details["thinking_tokens"] = details.pop("reasoning_tokens", None) or 0
    return {
        "input_tokens": int(found.get("prompt_tokens") or 0) - cached,
        "output_tokens": int(found.get("completion_tokens") or 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens_details": details,
    }


def _arguments(text: str) -> dict[str, Any]:
    """Of an answer that was cut off, as much as there is."""
    try:
        found = from_json(text or "{}", allow_partial="trailing-strings")
    except ValueError:  # a model's, whose calls are not constrained
        return {}
    return found if isinstance(found, dict) else {}
