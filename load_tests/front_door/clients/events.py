"""From what came over the wire to an answer: server-sent events as OpenAI's APIs have them, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from load_tests.front_door.clients.messages import Answer

OK = 200
DONE = b"[DONE]"
_END = b"\n\n"
_DATA = b"data:"


class Part(NamedTuple):
    """Bytes of a body, and when they came."""

    at_s: float
    content: bytes


def read_answer(body: int, status: int, stream: bool, parts: Sequence[Part], sent_s: float) -> Answer:
    """`parts` is the whole body; `sent_s` is when the request was sent, by the same clock."""
    ended_s = parts[-1].at_s if parts else sent_s
    if status != OK:
        text = b"".join(part.content for part in parts).decode(errors="replace")
        return Answer(body, status, text, "", 0, None, ended_s - sent_s)
    pieces, finish = (read_pieces if stream else _whole)(parts)
    first_s = pieces[0][0] - sent_s if stream and pieces else None
    return Answer(body, status, "".join(text for _, text in pieces), finish, len(pieces), first_s, ended_s - sent_s)


def events(parts: Iterable[Part]) -> Iterator[tuple[float, bytes]]:
    """The data of each event, and when its last byte came; comments and events without data are left out."""
    rest = b""
    for at_s, content in parts:
        *complete, rest = (rest + content).split(_END)
        for event in complete:
            lines = [line.removeprefix(_DATA).strip() for line in event.splitlines() if line.startswith(_DATA)]
            if lines:
                yield at_s, b"\n".join(lines)


Pieces = list[tuple[float, str]]


def read_pieces(parts: Sequence[Part]) -> tuple[Pieces, str]:
    """The pieces of text with their times, and the reason of the end; an event that is an error ends the answer as `error`."""
    pieces: Pieces = []
    finish = ""
    for at_s, data in events(parts):
        if data == DONE:
            break
        event = json.loads(data)
        if "error" in event:
            return pieces, "error"
        if event.get("type") == "response.output_text.delta":
            pieces.append((at_s, event["delta"]))
        finish = _ended(event.get("response") or {}) or finish
        for choice in event.get("choices") or ():
            if text := _text(choice.get("delta") or choice):
                pieces.append((at_s, text))
            finish = choice.get("finish_reason") or finish
    return pieces, finish


def _whole(parts: Sequence[Part]) -> tuple[Pieces, str]:
    answer = json.loads(b"".join(part.content for part in parts))
    if "output" in answer:
        texts = [part["text"] for item in answer["output"] for part in item.get("content") or ()]
        return [(parts[-1].at_s, "".join(texts))], _ended(answer)
    choice = answer["choices"][0]
    return [(parts[-1].at_s, _text(choice.get("message") or choice))], choice.get("finish_reason") or ""


def _ended(response: dict[str, Any]) -> str:
    """Why a response ended, as a chat completion says it; empty: it has not."""
    return {"completed": "stop", "incomplete": "length"}.get(response.get("status", ""), "")


def _text(of: dict[str, Any]) -> str:
    """Of a call, its arguments."""
    return of.get("content") or of.get("text") or "".join(call["function"].get("arguments") or "" for call in of.get("tool_calls") or ())
