"""The weighted sum of rewards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from model_service.lookahead.rewards.reward import Scoring


class WeightedSum:
    def __init__(self, terms: Sequence[tuple[float, Scoring]]) -> None:
        self._weights = [weight for weight, _ in terms]
        self._rewards = [reward for _, reward in terms]

    async def scored(self, texts: Sequence[str]) -> list[float]:
        """As large as weights and rewards make it: thresholds are meant for the sum."""
        scores = zip(*await asyncio.gather(*(reward.scored(texts) for reward in self._rewards)), strict=True)
        return [sum(weight * score for weight, score in zip(self._weights, of_text, strict=True)) for of_text in scores]
