"""Rewards of tokens are those of their text, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from model_service.errors import RewardLate
from model_service.lookahead.judging import TextJudge
from model_service.lookahead.rewards import Aside
from model_service.lookahead.rewards.length import Length


class Blocked:
    def __init__(self) -> None:
        self.go = Event()

    def score(self, texts: Sequence[str]) -> list[float]:
        self.go.wait(60)
        return [0.0] * len(texts)


async def test_tokens_are_scored_as_their_text() -> None:
    judge = TextJudge(Aside(Length(2, 2, "words"), asyncio.to_thread), lambda tokens: " ".join(map(str, tokens)), 60)
    assert await judge.score([(1,), (1, 2)]) == (0.5, 1.0)
    assert judge.seconds > 0


async def test_a_reward_that_hangs_is_not_waited_for() -> None:
    reward = Blocked()
    judge = TextJudge(Aside(reward, asyncio.to_thread), str, 0.01)
    try:
        with pytest.raises(RewardLate, match=r"0\.01 s"):
            await judge.score([(1,)])
    finally:
        reward.go.set()
