"""Rewards without an event loop of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from model_service.lookahead.rewards import Scoring


class AtOnce:
    """Scores for whoever waits."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring

    def score(self, texts: Sequence[str]) -> list[float]:
        return list(asyncio.run(self._scoring.scored(texts)))
