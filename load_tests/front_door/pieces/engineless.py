"""The application with model replicas whose engines have no model."""

from __future__ import annotations

from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments.app import build_with
from deployments.builders import engine_settings
from deployments.config import Settings
from deployments.replicas.modelling import ModelDeployment, Rewards
from model_service.engine.environment import prepare_environment


class EnginelessModel(ModelDeployment):
    """A model replica of ours in all else."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self, settings: Settings, compilers: DeploymentHandle[Any], rewards: Rewards
    ) -> None:
        prepare_environment(engine_settings(settings))
        from load_tests.front_door.pieces.core_stand_in import stand_in  # vLLM reads the environment when it is imported

        stand_in()
        await super().__init__(settings, compilers, rewards)


def engineless(settings: Settings) -> serve.Application:
    return build_with(settings, EnginelessModel)
