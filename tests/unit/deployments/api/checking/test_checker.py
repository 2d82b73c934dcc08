"""A finished answer that its schema does not allow is asked for again, with another seed, and never handed over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from deployments.api.checking import AnswerChecker, Check
from deployments.api.protocol import ParsedRequest
from deployments.errors import ApiError
from grammar_service.messages import AnswerCheck
from grammar_service.relaxation.judging import judged
from model_service.messages import Endpoint
from model_service.replies import Head
from tests.driving import schema_spec

CHECK = Check(schema_spec({"type": "array", "uniqueItems": True}), "")
RIGHT, WRONG = "[1, 2]", "[1, 1]"


async def judge(check: AnswerCheck) -> tuple[str | None, ...]:
    return tuple(judged(check.spec, check.answers))


class Engine:
    """Answers with one text after another, and keeps what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.asked: list[ParsedRequest] = []
        self._texts = list(texts)

    async def answer(self, request: ParsedRequest) -> AsyncGenerator[Head | str, None]:
        self.asked.append(request)
        text = self._texts.pop(0)
        yield Head(200, request.stream)
        if request.stream:
            for letter in text:
                yield f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': {'content': letter}}]})}\n\n"
            yield "data: [DONE]\n\n"
        else:
            yield json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})


def request(**body: Any) -> ParsedRequest:
    return ParsedRequest(Endpoint.CHAT, "id", body, None)


async def told(engine: Engine, request: ParsedRequest, counts: Counter[str], retries: int = 3) -> list[Any]:
    checker = AnswerChecker(judge, lambda event, number: counts.update({event: number}), retries, 1.0)
    return [item async for item in checker.answer(engine.answer, request, CHECK)]


@pytest.mark.parametrize("number", ["x", [], -1, 0, 1e300, None, True])
async def test_what_is_no_number_of_choices_is_left_to_the_engine(number: Any) -> None:
    head, _ = await told(Engine(RIGHT), request(n=number), Counter[str]())
    assert head == Head(200, False)


async def test_a_wrong_answer_is_asked_for_again_with_another_seed() -> None:
    engine, counts = Engine(WRONG, WRONG, RIGHT), Counter[str]()
    head, body = await told(engine, request(seed=7), counts)
    assert head == Head(200, False)
    assert json.loads(body)["choices"][0]["message"]["content"] == RIGHT
    assert len({asked.body["seed"] for asked in engine.asked}) == 3
    assert len({asked.request_id for asked in engine.asked}) == 3
    assert +counts == {"checked": 3, "retried": 2}


async def test_an_answer_that_stays_wrong_is_an_error() -> None:
    counts = Counter[str]()
    with pytest.raises(ApiError) as caught:
        await told(Engine(*[WRONG] * 4), request(), counts)
    assert (caught.value.status, caught.value.code) == (422, "constraint_not_met")
    assert counts == {"checked": 4, "retried": 3, "failed": 1}


async def test_where_every_answer_is_the_same_it_is_asked_for_once() -> None:
    engine = Engine(WRONG)
    with pytest.raises(ApiError):
        await told(engine, request(temperature=0), Counter())
    assert len(engine.asked) == 1


async def test_a_right_stream_ends_with_its_check() -> None:
    items = await told(Engine(RIGHT), request(stream=True), Counter())
    assert '"checked": true' in items[-1]
    assert items[-1].endswith("data: [DONE]\n\n")


async def test_a_wrong_stream_ends_with_an_error_after_its_unchecked_pieces() -> None:
    checker = AnswerChecker(judge, lambda event, number: None, 3, 1.0)
    items: list[Any] = []

    async def collect() -> None:
        async for item in checker.answer(Engine(WRONG).answer, request(stream=True), CHECK):
            items.append(item)

    with pytest.raises(ApiError) as caught:
        await collect()
    assert caught.value.code == "constraint_not_met"
    assert all('"unchecked":true' in item for item in items[2:])
    assert not any('"checked": true' in str(item) for item in items)
