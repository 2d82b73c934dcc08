"""Rewards that settings name are deployments of their own, which are asked in batches and replaced where they hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments.app import reward_application
from deployments.config import parse_settings
from deployments.replicas.rewarding import named_rewards
from model_service.errors import LookaheadError, RewardFailed, RewardLate
from model_service.lookahead.rewards import Gathered
from tests.e2e.service import wait_for
from tests.integration.router.fleet import delete

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300), pytest.mark.usefixtures("ray_serve")]
ODD = {"import_path": "tests.integration.deployments.odd_rewards:Odd", "args": {"worth": 2}}
DEADLINE_S = 2.0


@pytest.fixture(scope="module")
def handle(ray_serve: None) -> Iterator[DeploymentHandle[Any]]:
    settings = parse_settings({"model": {"lookahead": True, "rewards": {"odd": ODD}, "reward_deadline_s": DEADLINE_S}})
    yield serve.run(reward_application("odd", settings), name="reward", route_prefix=None)
    delete("reward")


def asked(handle: DeploymentHandle[Any], deadline_s: float = 60) -> Gathered:
    return named_rewards({"odd": handle}, deadline_s)["odd"]


async def until(condition: Callable[[], Coroutine[Any, Any, bool]], what: str) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(wait_for, lambda: asyncio.run_coroutine_threadsafe(condition(), loop).result(), 120, what)


async def test_texts_are_scored_by_the_class_of_the_settings(handle: DeploymentHandle[Any]) -> None:
    assert await asked(handle).scored(["", "ab"]) == [0, 4]


async def test_questions_of_several_replicas_are_one_batch(handle: DeploymentHandle[Any]) -> None:
    async def gathered() -> bool:  # in one of several rounds: on a busy machine each may come when the one before has gone
        sizes = await asyncio.gather(*(asked(handle).scored(["batch", "x"]) for _ in range(8)))
        return max(size for found in sizes for size in found) > 2

    await until(gathered, "a batch of two questions")


async def test_one_that_raises_has_failed(handle: DeploymentHandle[Any]) -> None:
    with pytest.raises(RewardFailed, match="'odd' failed"):
        await asked(handle).scored(["raise"])
    assert await asked(handle).scored(["a"]) == [2]


async def test_one_that_hangs_is_late_and_is_replaced(handle: DeploymentHandle[Any]) -> None:
    (process,) = await asked(handle).scored(["process"])
    with pytest.raises(RewardLate):
        await asked(handle, 0.5).scored(["hang"])

    async def another() -> bool:
        try:
            return await asked(handle, 2).scored(["process"]) != [process]
        except LookaheadError:
            return False

    await until(another, "another replica")
    assert await asked(handle).scored(["a"]) == [2]
