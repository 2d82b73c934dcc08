"""A reward that somebody else computes, asked for all texts that wait at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from model_service.errors import LookaheadError, RewardFailed, RewardLate

Ask: TypeAlias = Callable[[list[str]], Awaitable[Sequence[float]]]
MOST_TEXTS = 64
"""Of a batch that has several questions: those of four look-aheads at least."""


@dataclass(frozen=True, slots=True)
class _Question:
    texts: list[str]
    answer: asyncio.Future[list[float]]


class Gathered:
    """`ask` may fail as it likes; it is called for one batch at a time: what is asked for in between waits, and is in one of the next.
    Where it fails with the texts of several requests, each has another try by itself. `name` is for errors; a batch that takes longer than
    `deadline_s` is given up."""

    def __init__(self, name: str, ask: Ask, deadline_s: float) -> None:
        self._name = name
        self._ask = ask
        self._deadline_s = deadline_s
        self._waiting: list[_Question] = []
        self._asking: asyncio.Task[None] | None = None

    async def scored(self, texts: Sequence[str]) -> list[float]:
        """See `Scoring`. Raises RewardFailed, RewardLate."""
        question = _Question(list(texts), asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return await question.answer

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # so that whoever asks at the same time is in the same batch
                if batch := self._batch():
                    await self._answer(batch)
        finally:
            self._asking = None

    def _batch(self) -> list[_Question]:
        """Taken from those that wait."""
        waiting = [question for question in self._waiting if not question.answer.done()]
        counts = accumulate(len(question.texts) for question in waiting)
        fitting = max(1, sum(count <= MOST_TEXTS for count in counts))
        self._waiting = waiting[fitting:]
        return waiting[:fitting]

    async def _answer(self, batch: Sequence[_Question]) -> None:
        texts = [text for question in batch for text in question.texts]
        try:
            scores = iter(await self._scores(texts))
        except LookaheadError as error:
            if isinstance(error, RewardFailed) and len(batch) > 1:
                for question in batch:
                    if not question.answer.done():
                        await self._answer([question])
                return
            for question in batch:
                if not question.answer.done():
                    question.answer.set_exception(error)
            return
        for question in batch:
            found = [next(scores) for _ in question.texts]
            if not question.answer.done():
                question.answer.set_result(found)

    async def _scores(self, texts: list[str]) -> list[float]:
        try:
            scores = [float(score) for score in await asyncio.wait_for(self._ask(texts), self._deadline_s)]
        except TimeoutError:
            raise RewardLate(f"the reward {self._name!r} took more than {self._deadline_s:g} s") from None
        except Exception as error:  # it is others' code, behind others' transport
            raise RewardFailed(f"the reward {self._name!r} failed: {type(error).__name__}") from error
        if len(scores) != len(texts):
            raise RewardFailed(f"the reward {self._name!r} gave {len(scores)} scores for {len(texts)} texts")
        return scores
