"""Answers to schemas that are not enforced as a whole: checked when they are finished, and asked for again."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal

from deployments.api.checking.choices import CheckedChoices
from deployments.api.checking.stream import CheckedStream
from deployments.api.protocol import ParsedRequest
from deployments.errors import ApiError, unavailable
from grammar_service.messages import AnswerCheck
from grammar_service.spec import GrammarSpec
from model_service.replies import ENGINE_DEAD, Head

CONSTRAINT_NOT_MET = "constraint_not_met"
Ask = Callable[[ParsedRequest], AsyncGenerator[Head | str, None]]
"""A head, and the body in pieces."""
Judge = Callable[[AnswerCheck], Awaitable[tuple[str | None, ...]]]
"""What is wrong with each answer, None where nothing is."""
Event = Literal["checked", "retried", "failed"]


@dataclass(frozen=True)
class Check:
    """By the schema of which spec, for whom."""

    spec: GrammarSpec
    tenant: str


class AnswerChecker:
    """`retries` are the answers that are asked for after a first one, each judged within `deadline_s`; `count` is told how often something
    has happened."""

    def __init__(self, judge: Judge, count: Callable[[Event, int], None], retries: int, deadline_s: float) -> None:
        self._judge_answers = judge
        self._count = count
        self._retries = retries
        self._deadline_s = deadline_s

    async def answer(self, ask: Ask, request: ParsedRequest, check: Check) -> AsyncGenerator[Head | str, None]:
        """As `ask` answers; nothing wrong is handed over as right.

        Raises:
            ApiError: `constraint_not_met`; of a stream this is its last event.
            PoolBusy, PoolUnavailable: it cannot be judged now.
        """
        items = self._stream(ask, request, check) if request.stream else self._whole(ask, request, check)
        async with aclosing(items):
            async for item in items:
                yield item

    async def _whole(self, ask: Ask, request: ParsedRequest, check: Check) -> AsyncGenerator[Head | str, None]:
        choices = CheckedChoices(_per_prompt(request.body))
        for attempt in range(1 + (self._retries if _varies(request.body) else 0)):
            self._count("retried", 1 if attempt else 0)
            async with aclosing(ask(_again(request, attempt))) as items:
                head = await anext(items)
                content = "".join([str(piece) async for piece in items])
            if not isinstance(head, Head) or head.status != HTTPStatus.OK:
                yield head
                yield content
                return
            answer = _parsed(content)
            choices.add(answer, await self._judge(choices.to_judge(answer), check))
            if not choices.faults:
                yield head
                yield choices.text()
                return
        raise self._not_met(choices.faults)

    async def _stream(self, ask: Ask, request: ParsedRequest, check: Check) -> AsyncGenerator[Head | str, None]:
        stream = CheckedStream()
        async with aclosing(ask(request)) as items:
            async for item in items:
                if isinstance(item, Head):
                    yield item
                elif told := stream.piece(item):
                    yield told
        if stream.failed:
            return
        if faults := [fault for fault in await self._judge(stream.finished, check) if fault is not None]:
            raise self._not_met(faults)
        for event in stream.checked():
            yield event

    async def _judge(self, answers: list[str], check: Check) -> tuple[str | None, ...]:
        if not answers:
            return ()
        self._count("checked", len(answers))
        return await self._judge_answers(AnswerCheck(check.spec, tuple(answers), self._deadline_s, check.tenant))

    def _not_met(self, faults: list[str]) -> ApiError:
        self._count("failed", 1)
        return ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"The finished answer does not meet the constraint: {faults[0]}",
            code=CONSTRAINT_NOT_MET,
            kind="constraint_error",
        )


def _parsed(content: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(content)
    except ValueError:
        raise unavailable("The model replica ended in the middle of the answer.", ENGINE_DEAD, 5) from None
    return answer


def _per_prompt(body: Mapping[str, Any]) -> int:
    """Choices of each prompt. What is no number of them, the engine refuses."""
    number = body.get("n")
    return number if isinstance(number, int) and number > 0 else 1


def _varies(body: Mapping[str, Any]) -> bool:
    """Whether another seed makes another answer."""
    return body.get("temperature") != 0


def _again(request: ParsedRequest, attempt: int) -> ParsedRequest:
    """The same request with another seed; without one every answer has its own."""
    if not attempt:
        return request
    seed = request.body.get("seed")
    body = {**request.body, "seed": seed ^ attempt} if isinstance(seed, int) else request.body
    return replace(request, request_id=f"{request.request_id}-{attempt}", body=body)
