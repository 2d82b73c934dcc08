"""Answers with their confidence in place of log probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from deployments.api.confidence import FIELD, FieldConfidence, add_field_confidence, take_field_confidence
from deployments.errors import ApiError
from model_service.messages import Endpoint
from model_service.replies import Head

HALF, QUARTER = math.log(0.5), math.log(0.25)
TOKENS = [
    ('{"', 0.0),
    ("color", 0.0),
    ('": "', 0.0),
    ("re", HALF),
    ("d", HALF),
    ('", "', 0.0),
    ("n", 0.0),
    ('": ', 0.0),
    ("1", QUARTER),
    ("2}", HALF),
]
TEXT = "".join(token for token, _ in TOKENS)
CONFIDENCE = {"/color": 0.25, "/n": 0.125}
END = [("<end>", HALF)]


async def items_of(*items: Head | str) -> AsyncGenerator[Head | str, None]:
    for item in items:
        yield item


async def at_once(work: Callable[[str], str], content: str) -> str:
    return work(content)


async def told(*items: Head | str, stream: bool = False, keeps: bool = False) -> list[Any]:
    return [item async for item in add_field_confidence(items_of(*items), FieldConfidence(keeps), stream, at_once)]


def chat_logprobs(tokens: list[tuple[str, float]]) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in tokens]}


def chat(text: str | None, tokens: list[tuple[str, float]], reasoning: str = "", finish: str = "stop") -> str:
    message = {"content": text, "reasoning": reasoning or None}
    choice = {"index": 0, "message": message, "logprobs": chat_logprobs(tokens), "finish_reason": finish}
    return json.dumps({"choices": [choice]})


def event(text: str, tokens: list[tuple[str, float]], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": chat_logprobs(tokens), "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_chat_tells_it_for_each_leaf(keeps: bool) -> None:
    _, content = await told(Head(200, False), *chat(TEXT, TOKENS + END), keeps=keeps)
    (choice,) = json.loads(content)["choices"]
    assert choice[FIELD] == CONFIDENCE
    assert bool(choice["logprobs"]) == keeps


async def test_a_completion_tells_it_too() -> None:
    tokens, values = zip(*TOKENS, strict=True)
    choice = {"index": 0, "text": TEXT, "logprobs": {"tokens": tokens, "token_logprobs": values}}
    _, content = await told(Head(200, False), json.dumps({"choices": [choice]}))
    assert json.loads(content)["choices"][0][FIELD] == CONFIDENCE


@pytest.mark.parametrize("together", [1, 4])
async def test_a_stream_tells_it_in_the_last_event_of_a_choice(together: int) -> None:
    events = [event(token, [(token, value)]) for token, value in TOKENS] + [event("", END, "stop"), "data: [DONE]\n\n"]
    pieces = ["".join(events[at : at + together]) for at in range(0, len(events), together)]
    _, *sent = await told(Head(200, True), *pieces, stream=True)
    *data, done = "".join(sent).split("\n\n")[:-1]
    choices = [json.loads(one.removeprefix("data: "))["choices"][0] for one in data]
    assert done == "data: [DONE]"
    assert [choice.get(FIELD) for choice in choices] == [None] * len(TOKENS) + [CONFIDENCE]
    assert "".join(choice["delta"]["content"] for choice in choices) == TEXT
    assert not any(choice["logprobs"] for choice in choices)


async def test_reasoning_ahead_does_not_count() -> None:
    _, content = await told(Head(200, False), chat(TEXT, [(TEXT, QUARTER), ("</think>", HALF), *TOKENS, *END], TEXT))
    assert json.loads(content)["choices"][0][FIELD] == CONFIDENCE
    cut = chat("A", [("A is nicer", 0.0), ("</think>", HALF), ("A", QUARTER)], "A is nicer", "length")
    _, content = await told(Head(200, False), cut)
    assert json.loads(content)["choices"][0][FIELD] == {"": 0.25}


async def test_a_text_is_one_leaf_with_its_end() -> None:
    _, content = await told(Head(200, False), chat("e", [("e", HALF), *END]))
    assert json.loads(content)["choices"][0][FIELD] == {"": 0.25}


@pytest.mark.parametrize(("text", "tokens"), [(None, TOKENS), ("other", TOKENS), ("x", [])])
async def test_what_the_tokens_do_not_make_has_none(text: str | None, tokens: list[tuple[str, float]]) -> None:
    _, content = await told(Head(200, False), chat(text, tokens))
    assert json.loads(content)["choices"][0][FIELD] is None


async def test_an_error_is_passed_on() -> None:
    assert await told(Head(400, False), '{"error"', ": 1}") == [Head(400, False), '{"error"', ": 1}"]
    assert (await told(Head(200, True), 'data: {"error": {}}\n\n', stream=True))[1] == 'data: {"error":{}}\n\n'


@pytest.mark.parametrize(("endpoint", "asked"), [(Endpoint.CHAT, True), (Endpoint.COMPLETION, 0)])
def test_log_probabilities_are_asked_for(endpoint: Endpoint, asked: Any) -> None:
    body: dict[str, Any] = {FIELD: True}
    assert take_field_confidence(endpoint, body) == FieldConfidence(keeps_logprobs=False)
    assert body == {"logprobs": asked}
    assert type(body["logprobs"]) is type(asked)
    assert take_field_confidence(endpoint, {**body, FIELD: True}) == FieldConfidence(keeps_logprobs=True)


def test_who_does_not_ask_has_none() -> None:
    body: dict[str, Any] = {FIELD: False}
    assert take_field_confidence(Endpoint.CHAT, body) is None
    assert body == {}


@pytest.mark.parametrize("name", ["echo", "return_tokens_as_token_ids"])
def test_what_changes_the_tokens_is_refused(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        take_field_confidence(Endpoint.CHAT, {FIELD: True, name: True})
    assert caught.value.param == name
