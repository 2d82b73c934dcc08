"""Chat completions as answers of OpenAI's Responses API: the response object, and the events of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from deployments.api.confidence import FIELD
from deployments.api.translation.values import Event, is_complete_json, split_calls
from deployments.errors import ApiError

_ECHOED: dict[str, Any] = {
    **dict.fromkeys(("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt_cache_key", "reasoning")),
    **dict.fromkeys(("safety_identifier", "temperature", "top_p", "user")),
    "background": False,
    "metadata": {},
    "parallel_tool_calls": True,
    "service_tier": "default",
    "store": True,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "truncation": "disabled",
}
"""Fields of a request that its response repeats, each with what it is where the request does not have it."""
IN_PROGRESS, COMPLETED, INCOMPLETE, FAILED, CANCELLED = "in_progress", "completed", "incomplete", "failed", "cancelled"
CALL = "function_call"
ENDED = (COMPLETED, INCOMPLETE)
"""The status of a response with an answer."""
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponseAnswer:
    """The response of one request: grows with the answer, and tells of it in events, which nobody has to read. `number`: the response's."""

    def __init__(self, body: Mapping[str, Any], number: str, model: str) -> None:
        """`body` is the request, as far as the response is to repeat it."""
        echoed = {name: otherwise if body.get(name) is None else body[name] for name, otherwise in _ECHOED.items()}
        self.response: dict[str, Any] = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": int(time.time()),
            "completed_at": None,
            "status": IN_PROGRESS,
            "error": None,
            "incomplete_details": None,
            "model": model,
            "output": [],
            "usage": None,
            **echoed,
        }
        self._number = number
        self._sequence = -1
        self._item: dict[str, Any] | None = None
        self._place: tuple[str, int] | None = None
        """What kind of item is open, and which call it is."""
        self._pieces: list[str] = []
        """Of the open item's text or arguments."""
        self._finish = ""
        self._stop: Any = None
        """The stop sequence that has ended it."""

    def begin(self) -> Iterator[Event]:
        yield self._event("response.created", response=dict(self.response))
        yield self._event("response.in_progress", response=dict(self.response))

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """All of a chat completion that does not stream."""
        choice = answer["choices"][0]
        message = choice["message"]
        calls = [{**call, "index": index} for index, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, "tool_calls": calls}
        for _ in self.of({**answer, "choices": [{**choice, "delta": delta}]}):
            pass
        for _ in self.end():
            pass
        return self.response

    def of(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        if usage := chunk.get("usage"):
            self.response["usage"] = _usage(usage)
        if "maskcast" in chunk:
            self.response["maskcast"] = {**self.response.get("maskcast", {}), **chunk["maskcast"]}
        for choice in chunk.get("choices") or ():
            yield from self._delta(choice.get("delta") or {}, ((choice.get("logprobs") or {}).get("content")) or [])
            self._finish = choice.get("finish_reason") or self._finish
            self._stop = choice.get("stop_reason") or self._stop
            if FIELD in choice:
                self.response[FIELD] = choice[FIELD]

    def end(self) -> Iterator[Event]:
        reason = _INCOMPLETE.get(self._finish)
        yield from self._end_of_item(INCOMPLETE if reason is not None or self._is_cut_off() else COMPLETED)
        self.response["status"] = COMPLETED if reason is None else INCOMPLETE
        self.response["completed_at"] = int(time.time())
        if reason is not None:
            self.response["incomplete_details"] = {"reason": reason}
        yield self._event(f"response.{self.response['status']}", response=self.response)

    def fail(self, error: ApiError) -> Iterator[Event]:
        self.response |= failure(error)
        yield self._event("response.failed", response=self.response)

    def _is_cut_off(self) -> bool:
        """Whether a stop sequence has ended a call, which is not to be made."""
        return (
            isinstance(self._stop, str)
            and self._place is not None
            and self._place[0] == CALL
            and not is_complete_json("".join(self._pieces))
        )

    def _delta(self, delta: Mapping[str, Any], logprobs: list[Any]) -> Iterator[Event]:
        open_call = self._place[1] if self._place and self._place[0] == CALL else None
        more, others = split_calls(delta, open_call)
        for call in more:
            yield from self._call_piece(call, call.get("function") or {})
        if thought := delta.get("reasoning"):
            yield from self._text_piece("reasoning", thought, [])
        if text := delta.get("content"):
            yield from self._text_piece("message", text, logprobs)
        for call in others:
            yield from self._call_piece(call, call.get("function") or {})

    def _text_piece(self, kind: str, text: str, logprobs: list[Any]) -> Iterator[Event]:
        if self._place != (kind, 0):
            yield from self._end_of_item(COMPLETED)
            yield from self._start(kind)
        self._pieces.append(text)
        if kind == "reasoning":
            yield self._event("response.reasoning_text.delta", content_index=0, delta=text, **self._where)
            return
        self._open["content"][0]["logprobs"] += logprobs
        yield self._event("response.output_text.delta", content_index=0, delta=text, logprobs=logprobs, **self._where)

    def _start(self, kind: str) -> Iterator[Event]:
        part: dict[str, Any]
        if kind == "reasoning":
            item = {"id": self._name("rs"), "type": kind, "summary": [], "content": [], "status": IN_PROGRESS}
            part = {"type": "reasoning_text", "text": ""}
        else:
            item = {"id": self._name("msg"), "type": kind, "role": "assistant", "content": [], "status": IN_PROGRESS}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._added(item, (kind, 0))
        yield self._event("response.content_part.added", content_index=0, part=dict(part), **self._where)
        self._open["content"] = [part]

    def _call_piece(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> Iterator[Event]:
        if self._place != (CALL, call["index"]):
            yield from self._end_of_item(COMPLETED)
            item = {"id": self._name("fc"), "type": CALL, "call_id": call.get("id"), "name": function.get("name")}
            yield self._added({**item, "arguments": "", "status": IN_PROGRESS}, (CALL, call["index"]))
        if arguments := function.get("arguments"):
            self._pieces.append(arguments)
            yield self._event("response.function_call_arguments.delta", delta=arguments, **self._where)

    def _added(self, item: dict[str, Any], place: tuple[str, int]) -> Event:
        self._item, self._place = item, place
        self.response["output"].append(item)
        return self._event("response.output_item.added", output_index=self._where["output_index"], item=dict(item))

    def _end_of_item(self, status: str) -> Iterator[Event]:
        if self._item is None:
            return
        item, where, text = self._item, self._where, "".join(self._pieces)
        item["status"] = status
        self._pieces.clear()
        if item["type"] == CALL:
            item["arguments"] = text
            yield self._event("response.function_call_arguments.done", arguments=text, name=item["name"], **where)
        else:
            part = item["content"][0]
            part["text"] = text
            told = {"logprobs": part["logprobs"]} if "logprobs" in part else {}
            yield self._event(f"response.{part['type']}.done", content_index=0, text=text, **told, **where)
            yield self._event("response.content_part.done", content_index=0, part=part, **where)
        yield self._event("response.output_item.done", output_index=where["output_index"], item=item)
        self._item = self._place = None

    @property
    def _open(self) -> dict[str, Any]:
        assert self._item is not None, "an item is open"
        return self._item

    @property
    def _where(self) -> dict[str, Any]:
        return {"item_id": self._open["id"], "output_index": len(self.response["output"]) - 1}

    def _name(self, prefix: str) -> str:
        return f"{prefix}_{self._number}{len(self.response['output'])}"

    def _event(self, kind: str, **members: Any) -> Event:
        self._sequence += 1
        return {"type": kind, "sequence_number": self._sequence, **members}


def failure(error: ApiError) -> dict[str, Any]:
    """What a response says of it. Clients know a few codes."""
    code = "rate_limit_exceeded" if error.status == HTTPStatus.TOO_MANY_REQUESTS else "invalid_prompt"
    told = "server_error" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else code
    return {"status": FAILED, "error": {"code": told, "message": error.message}}


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    details = usage.get("completion_tokens_details") or {}
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": usage.get("completion_tokens") or 0,
        "output_tokens_details": {**details, "reasoning_tokens": details.get("reasoning_tokens") or 0},
        "total_tokens": usage["total_tokens"],
    }
