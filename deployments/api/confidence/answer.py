"""Answers that tell, in place of the log probabilities of their tokens, how likely the model's own choices were in each leaf."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import accumulate
from typing import Any

import msgspec

from deployments.api.bounds.request_limits import is_asked_for
from deployments.api.confidence.leaves import leaves
from deployments.errors import bad_request
from model_service.messages import Endpoint
from model_service.replies import Head

FIELD = "field_confidence"
"""Of a request: `true` asks for it. Of a choice: the probabilities by JSON Pointer (RFC 6901)."""
LOGPROBS = "logprobs"
_NOT_WITH = ("echo", "return_tokens_as_token_ids")
"""They change what stands in the place of the answer's tokens."""
_DIGITS = 4
_DATA, _BETWEEN, _DONE = "data: ", "\n\n", "[DONE]"
Items = AsyncGenerator[Head | str, None]
Aside = Callable[[Callable[[str], str], str], Awaitable[str]]
"""Calls a function with a text, beside the event loop where the text is long."""


def ask_for_tokens(endpoint: Endpoint, body: dict[str, Any]) -> bool | None:
    """Whether a body that asks for confidence asks for log probabilities as well, which it does from now on; None where it does not ask.
    Raises ApiError."""
    if not body.get(FIELD):
        return None
    for name in _NOT_WITH:
        if body.get(name):
            raise bad_request(f"'{name}' cannot be combined with '{FIELD}'.", name, "unsupported_parameter")
    wants = is_asked_for(body.get(LOGPROBS))
    if not wants:
        body[LOGPROBS] = True if endpoint is Endpoint.CHAT else 0
    return wants


async def confident(items: Items, stream: bool, keeps_logprobs: bool, aside: Aside) -> Items:
    """The same answer with its confidence, of a stream in each choice's last event. An answer that is an error is passed on as it is."""
    async with aclosing(items):
        head = await anext(items)
        yield head
        if not isinstance(head, Head) or head.status != HTTPStatus.OK:
            async for item in items:
                yield item
        elif stream:
            told = _Stream(keeps_logprobs)
            async for item in items:
                yield told.piece(item) if isinstance(item, str) else item
        else:
            content = "".join([str(item) async for item in items])
            yield await aside(lambda text: _whole(text, keeps_logprobs), content)


@dataclass(slots=True)
class _Choice:
    """The text of the answer so far, and the tokens of all that the model has written."""

    text: str = ""
    reasons: bool = False
    ends_itself: bool = True
    tokens: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def follow(self, told: dict[str, Any], keeps_logprobs: bool) -> None:
        part = told.get("message", told.get("delta", told))
        self.text += part.get("content", part.get("text")) or ""
        self.reasons = self.reasons or bool(part.get("reasoning") or part.get("reasoning_content"))
        self.ends_itself = told.get("finish_reason") != "length"
        for token, value in _tokens(told.get(LOGPROBS) or {}):
            self.tokens.append(token)
            self.logprobs.append(value)
        if not keeps_logprobs:
            told[LOGPROBS] = None

    def confidence(self) -> dict[str, float] | None:
        """None where the answer has no text, or one that its tokens do not make."""
        start = self._start()
        if start is None:
            return None
        ends = [end - start for end in accumulate(map(len, self.tokens))]
        sums = [0.0, *accumulate(self.logprobs)]

        def certainty(first: int, end: int) -> float:
            """Of the tokens that have characters of the leaf."""
            last = min(bisect_left(ends, end) + 1, len(ends))
            return float(f"{math.exp(min(0.0, sums[last] - sums[min(bisect_right(ends, first), last)])):.{_DIGITS}g}")

        return {leaf.pointer: certainty(leaf.start, leaf.end) for leaf in leaves(self.text)}

    def _start(self) -> int | None:
        """Of the answer among all that was written: reasoning stands ahead of it, and perhaps a token that ends it behind it."""
        written = "".join(self.tokens)
        if not self.text:
            return None
        if not self.reasons:
            return 0 if written.startswith(self.text) else None
        last = len(self.tokens[-1]) if self.tokens else 0
        ends = (len(written) - last, len(written)) if self.ends_itself else (len(written),)
        return next((end - len(self.text) for end in ends if end >= len(self.text) and written[:end].endswith(self.text)), None)


def _tokens(told: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Of a chat's choice, or of a completion's."""
    if "tokens" in told:
        return list(zip(told["tokens"], (value or 0.0 for value in told["token_logprobs"]), strict=True))
    return [(token["token"], token["logprob"]) for token in told.get("content") or ()]


def _whole(content: str, keeps_logprobs: bool) -> str:
    answer = msgspec.json.decode(content)
    for told in answer["choices"]:
        choice = _Choice()
        choice.follow(told, keeps_logprobs)
        told[FIELD] = choice.confidence()
    return msgspec.json.encode(answer).decode()


class _Stream:
    def __init__(self, keeps_logprobs: bool) -> None:
        self._keeps_logprobs = keeps_logprobs
        self._choices: dict[int, _Choice] = {}

    def piece(self, piece: str) -> str:
        return "".join(f"{self._event(event)}{_BETWEEN}" for event in piece.split(_BETWEEN) if event)

    def _event(self, event: str) -> str:
        data = event.removeprefix(_DATA)
        if data == _DONE:
            return event
        told = msgspec.json.decode(data)
        for one in told.get("choices") or ():
            choice = self._choices.setdefault(one.get("index", 0), _Choice())
            choice.follow(one, self._keeps_logprobs)
            if one.get("finish_reason") is not None:
                one[FIELD] = choice.confidence()
        return f"{_DATA}{msgspec.json.encode(told).decode()}"
