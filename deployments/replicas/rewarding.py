"""Rewards that settings name: their deployments, and how a model replica asks them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments.config_models import RewardSettings
from deployments.errors import RewardHangs
from deployments.replica_process import listen_on_node_only
from model_service.lookahead.rewards import Gathered, Reward

QUESTIONS = 64
"""Of one batch: each has the texts of all look-aheads of a step."""
PATIENCE = 3
"""Times the deadline: what takes longer is not waited for by anybody, and does not end by itself."""


class RewardDeployment:
    """One reward, which computes one batch after the other. `deadline_s`: how long its callers wait."""

    def __init__(self, settings: RewardSettings, deadline_s: float) -> None:
        listen_on_node_only()
        self._reward = reward_of(settings)
        self._patience_s = PATIENCE * deadline_s
        self._began: float | None = None

    async def score(self, texts: list[str]) -> list[float]:
        """Of each text, its reward."""
        scores: list[float] = await self._batched(texts)
        return scores

    @serve.batch(max_batch_size=QUESTIONS, batch_wait_timeout_s=0)
    async def _batched(self, questions: list[list[str]]) -> list[list[float]]:
        self._began = time.monotonic()
        try:
            scores = iter(await asyncio.to_thread(self._reward.score, [text for texts in questions for text in texts]))
        finally:
            self._began = None
        return [[float(next(scores)) for _ in texts] for texts in questions]

    async def check_health(self) -> None:
        """Raises RewardHangs, on which the replica is to be replaced: no thread can be ended."""
        if self._began is not None and time.monotonic() - self._began > self._patience_s:
            raise RewardHangs(f"a reward has been computed for more than {self._patience_s:g} s")


def reward_of(settings: RewardSettings) -> Reward:
    """Raises SettingsError, and whatever an import path raises."""
    if settings.classifier is not None:
        from deployments.replicas.classifier import Classifier  # torch and transformers, which other rewards do not need

        return Classifier(settings.classifier, settings.label, settings.batch, "cuda" if settings.gpus else "cpu")
    module, _, name = str(settings.import_path).partition(":")
    made: Reward = getattr(import_module(module), name)(**settings.args)
    return made


def named_rewards(handles: Mapping[str, DeploymentHandle[Any]], deadline_s: float) -> dict[str, Gathered]:
    """As a model replica asks them: all look-aheads of a step in one call."""
    return {name: Gathered(name, partial(_ask, handle), deadline_s) for name, handle in handles.items()}


async def _ask(handle: DeploymentHandle[Any], texts: list[str]) -> Sequence[float]:
    scores: list[float] = await handle.score.remote(texts)
    return scores
