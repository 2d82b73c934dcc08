"""Rewards that an engine has names for: one that scores, and some that fail once a text is long enough for a stream to have begun."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from model_service.lookahead.rewards import Gathered, Scoring
from model_service.lookahead.rewards.gathered import Ask
from model_service.lookahead.rewards.length import Length

LATER = 24
"""Characters."""
DEADLINE_S = 60.0
SOON_S = 0.2


class Counted:
    """Scores texts by their length, and knows how many it was asked for at a time."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self._reward = Length(0, 1, "characters")

    async def __call__(self, texts: list[str]) -> Sequence[float]:
        self.batches.append(len(texts))
        return self._reward.score(texts)


SHORT_REWARD = Counted()


def once_long(fault: Callable[[], float]) -> Ask:
    async def asked(texts: list[str]) -> Sequence[float]:
        if max(map(len, texts)) > LATER:
            return [fault() for _ in texts]
        return [0.0 for _ in texts]

    return asked


async def _hangs(texts: list[str]) -> Sequence[float]:
    if max(map(len, texts)) > LATER:
        await asyncio.Event().wait()
    return [0.0 for _ in texts]


def named() -> dict[str, Scoring]:
    return {
        "short": Gathered("short", SHORT_REWARD, DEADLINE_S),
        "nan": Gathered("nan", once_long(lambda: math.nan), DEADLINE_S),
        "fails": Gathered("fails", once_long(lambda: 1 / 0), DEADLINE_S),
        "hangs": Gathered("hangs", _hangs, SOON_S),
    }
