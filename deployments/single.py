"""A service of one model replica, which contains the API server.

Where there is nothing to choose, an ingress of its own would only carry: with a call and each piece of its answer, 4 of the 13 ms of
processor time a request that stand before the engine (`docs/design/http.md`).
"""

from __future__ import annotations

from typing import Any

from ray.serve.handle import DeploymentHandle

from deployments.api.api_server import ApiServer
from deployments.api.deployment import ByHandle
from deployments.api.engine_calls import OwnEngine
from deployments.builders import engine_seats
from deployments.config import Settings
from deployments.grammars.pool import CompilePool
from deployments.grammars.traced import TracedPool
from deployments.replicas.modelling import ModelDeployment, Rewards


class SingleDeployment(ModelDeployment, ByHandle):
    """The model replica, with an API server in front of its engine."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits constructors
        self, settings: Settings, application: str, compilers: DeploymentHandle[Any], rewards: Rewards
    ) -> None:
        await super().__init__(settings, compilers, rewards)
        pool = CompilePool(compilers) if self._tracing is None else TracedPool(compilers, self._tracing)
        engine = OwnEngine(self._answering, engine_seats(settings), settings.model.max_queued_requests)
        self._api = ApiServer(settings, application, pool, await pool.fingerprint(), engine, self._tracing)
        self._loop_watch.heap.held_bytes = self._api.held_bytes

    async def __del__(self) -> None:
        if hasattr(self, "_api"):
            await self._api.close()
        await super().__del__()
