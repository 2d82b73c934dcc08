"""Adds the probability of each leaf of a JSON answer to the answer, from the log probabilities of its tokens."""

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

from deployments.api.bounds.request_limits import requests_logprobs
from deployments.api.confidence.leaves import find_leaves
from deployments.errors import bad_request
from model_service.messages import Endpoint
from model_service.replies import Head

FIELD = "field_confidence"
"""Of a request: `true` asks for it. Of a choice: the probabilities by JSON Pointer (RFC 6901)."""
LOGPROBS = "logprobs"
_CONFLICTING = ("echo", "return_tokens_as_token_ids")
"""With these, the tokens of an answer are not the text of the answer."""
_DIGITS = 4
"""Significant digits of a probability."""
_DATA, _BETWEEN, _DONE = "data: ", "\n\n", "[DONE]"
Items = AsyncGenerator[Head | str, None]
RunOnText = Callable[[Callable[[str], str], str], Awaitable[str]]
"""Calls a function with a text, in a thread if the text is long."""


@dataclass(frozen=True, slots=True)
class FieldConfidence:
    """`keeps_logprobs`: the client has asked for log probabilities as well."""

    keeps_logprobs: bool


def take_field_confidence(endpoint: Endpoint, body: dict[str, Any]) -> FieldConfidence | None:
    """Take the field out of a body, and ask for log probabilities instead. None: it is not requested. Raises ApiError."""
    if not body.pop(FIELD, False):
        return None
    for name in _CONFLICTING:
        if body.get(name):
            raise bad_request(f"'{name}' cannot be combined with '{FIELD}'.", name, "unsupported_parameter")
    keeps_logprobs = requests_logprobs(body.get(LOGPROBS))
    if not keeps_logprobs:
        body[LOGPROBS] = True if endpoint is Endpoint.CHAT else 0
    return FieldConfidence(keeps_logprobs)


async def add_field_confidence(items: Items, requested: FieldConfidence, stream: bool, run: RunOnText) -> Items:
    """The same answer with a `field_confidence` in each choice; in a stream, in the last event of each choice. Errors are passed on."""
    async with aclosing(items):
        head = await anext(items)
        yield head
        if not isinstance(head, Head) or head.status != HTTPStatus.OK:
            async for item in items:
                yield item
        elif stream:
            events = _StreamEvents(requested.keeps_logprobs)
            async for item in items:
                yield events.rewrite(item) if isinstance(item, str) else item
        else:
            content = "".join([str(item) async for item in items])
            yield await run(lambda text: _rewrite_whole(text, requested.keeps_logprobs), content)


@dataclass(slots=True)
class _ChoiceTokens:
    """`texts`: the pieces of the answer so far. `tokens`: the text of each generated token, those of the reasoning included."""

    texts: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    has_reasoning: bool = False
    is_cut: bool = False

    def add(self, choice: dict[str, Any], keeps_logprobs: bool) -> None:
        """A whole choice, or one of its events."""
        part = choice.get("message", choice.get("delta", choice))
        self.texts.append(part.get("content", part.get("text")) or "")
        self.has_reasoning = self.has_reasoning or bool(part.get("reasoning") or part.get("reasoning_content"))
        self.is_cut = choice.get("finish_reason") == "length"
        for token, logprob in _tokens(choice.get(LOGPROBS) or {}):
            self.tokens.append(token)
            self.logprobs.append(logprob)
        if not keeps_logprobs:
            choice[LOGPROBS] = None

    def probabilities(self) -> dict[str, float] | None:
        """By the pointer of each leaf. None: the answer has no text, or a text that differs from its tokens."""
        text = "".join(self.texts)
        start = self._find_start(text)
        if start is None:
            return None
        ends = [end - start for end in accumulate(map(len, self.tokens))]
        sums = [0.0, *accumulate(self.logprobs)]

        def probability(first: int, end: int) -> float:
            """Of all tokens that have characters of the leaf."""
            last = min(bisect_left(ends, end) + 1, len(ends))
            return float(f"{math.exp(min(0.0, sums[last] - sums[min(bisect_right(ends, first), last)])):.{_DIGITS}g}")

        return {leaf.pointer: probability(leaf.start, leaf.end) for leaf in find_leaves(text)}

    def _find_start(self, text: str) -> int | None:
        """The answer's first character in the text of all tokens. Reasoning precedes it, and a stop token may follow it."""
        generated = "".join(self.tokens)
        if not text:
            return None
        if not self.has_reasoning:
            return 0 if generated.startswith(text) else None
        stop = len(self.tokens[-1]) if self.tokens else 0
        ends = (len(generated),) if self.is_cut else (len(generated) - stop, len(generated))
        return next((end - len(text) for end in ends if end >= len(text) and generated[:end].endswith(text)), None)


def _tokens(logprobs: Mapping[str, Any]) -> list[tuple[str, float]]:
    """From the `logprobs` of a completion's choice, or of a chat's."""
    if "tokens" in logprobs:
        return list(zip(logprobs["tokens"], (value or 0.0 for value in logprobs["token_logprobs"]), strict=True))
    return [(token["token"], token["logprob"]) for token in logprobs.get("content") or ()]


def _rewrite_whole(content: str, keeps_logprobs: bool) -> str:
    answer = msgspec.json.decode(content)
    for choice in answer["choices"]:
        tokens = _ChoiceTokens()
        tokens.add(choice, keeps_logprobs)
        choice[FIELD] = tokens.probabilities()
    return msgspec.json.encode(answer).decode()


class _StreamEvents:
    def __init__(self, keeps_logprobs: bool) -> None:
        self._keeps_logprobs = keeps_logprobs
        self._choices: dict[int, _ChoiceTokens] = {}

    def rewrite(self, events: str) -> str:
        """Some whole events."""
        return "".join(f"{self._event(event)}{_BETWEEN}" for event in events.split(_BETWEEN) if event)

    def _event(self, event: str) -> str:
        data = event.removeprefix(_DATA)
        if data == _DONE:
            return event
        chunk = msgspec.json.decode(data)
        for choice in chunk.get("choices") or ():
            tokens = self._choices.setdefault(choice.get("index", 0), _ChoiceTokens())
            tokens.add(choice, self._keeps_logprobs)
            if choice.get("finish_reason") is not None:
                choice[FIELD] = tokens.probabilities()
        return f"{_DATA}{msgspec.json.encode(chunk).decode()}"
