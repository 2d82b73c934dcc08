"""Rewards of tokens, within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from model_service.errors import RewardLate
from model_service.lookahead.instructions import Tokens
from model_service.lookahead.rewards.reward import Reward


class TextJudge:
    """Scores the text that tokens are. `text_of` leaves out what ends a text; `deadline_s` is for all texts of a question."""

    def __init__(self, reward: Reward, text_of: Callable[[Tokens], str], deadline_s: float) -> None:
        self._reward = reward
        self._text_of = text_of
        self._deadline_s = deadline_s
        self.seconds = 0.0

    async def score(self, texts: Sequence[Tokens]) -> tuple[float, ...]:
        """In a thread: others wait for nobody's reward. Raises RewardLate."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return tuple(await asyncio.wait_for(asyncio.to_thread(self._scored, texts), self._deadline_s))
        except TimeoutError:
            raise RewardLate(f"the reward took more than {self._deadline_s:g} s") from None
        finally:
            self.seconds += clock() - began

    def _scored(self, texts: Sequence[Tokens]) -> list[float]:
        return self._reward.score([self._text_of(text) for text in texts])
