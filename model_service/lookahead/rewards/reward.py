"""What every reward promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias


class Reward(Protocol):
    def score(self, texts: Sequence[str]) -> list[float]:
        """A finite number for each text, higher for better ones: the answer so far with a look-ahead, without its prompt. The same text
        always has the same one."""


class Scoring(Protocol):
    async def scored(self, texts: Sequence[str]) -> Sequence[float]:
        """The same, of a reward that others are not to wait for. Raises LookaheadError."""


Scores: TypeAlias = list[float]
Run: TypeAlias = Callable[[Callable[[], Scores]], Awaitable[Scores]]


class Aside:
    """A reward that is computed where `run` calls it."""

    def __init__(self, reward: Reward, run: Run) -> None:
        self._reward = reward
        self._run = run

    async def scored(self, texts: Sequence[str]) -> list[float]:
        """See `Scoring`."""
        return await self._run(lambda: self._reward.score(texts))
