"""What every reward promises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol


class Reward(Protocol):
    def score(self, texts: Sequence[str]) -> list[float]:
        """A finite number for each text, higher for better ones: the answer so far with a look-ahead, without its prompt. The same text
        always has the same one."""


class Scoring(Protocol):
    async def scored(self, texts: Sequence[str]) -> Sequence[float]:
        """The same, of a reward that others are not to wait for. Raises LookaheadError."""


class Aside:
    """A reward that is computed in a thread of this process."""

    def __init__(self, reward: Reward) -> None:
        self._reward = reward

    async def scored(self, texts: Sequence[str]) -> list[float]:
        """See `Scoring`."""
        return await asyncio.to_thread(self._reward.score, texts)
