"""Rewards of tokens, within a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from model_service.errors import RewardLate
from model_service.lookahead.instructions import Tokens
from model_service.lookahead.rewards.reward import Scoring


class TextJudge:
    """Scores the text that tokens are. `text_of` leaves out what ends a text; `deadline_s` is for all texts of a question."""

    def __init__(self, reward: Scoring, text_of: Callable[[Tokens], str], deadline_s: float) -> None:
        self._reward = reward
        self._text_of = text_of
        self._deadline_s = deadline_s
        self.seconds = 0.0

    async def score(self, texts: Sequence[Tokens]) -> tuple[float, ...]:
        """Others wait for nobody's reward. Raises RewardLate, and what the reward raises."""
        began = time.perf_counter()  # the loop's own time may stand still while it is busy
        try:
            return tuple(await asyncio.wait_for(self._scored(texts), self._deadline_s))
        except TimeoutError:
            raise RewardLate(f"the reward took more than {self._deadline_s:g} s") from None
        finally:
            self.seconds += time.perf_counter() - began

    async def _scored(self, texts: Sequence[Tokens]) -> Sequence[float]:
        return await self._reward.scored(await asyncio.to_thread(lambda: [self._text_of(text) for text in texts]))
