"""The ingress deployment's parts, put together where Ray Serve starts it."""

from __future__ import annotations

from typing import Any

from ray.serve.handle import DeploymentHandle

from deployments.api_keys import ApiKeys
from deployments.builders import limits, open_redis
from deployments.config import Settings
from deployments.gateway import Gateway
from deployments.health import COMPILER, MODEL, HealthReader
from deployments.ingress import IngressService
from deployments.pool import CompilePool
from deployments.prepared import PreparedGrammars
from deployments.protocol import RequestReader
from deployments.telemetry import MetricsPage, RequestMetrics


class FrontDoor(IngressService):
    """An `IngressService` that builds itself from the settings."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits constructors
        self, settings: Settings, application: str, compilers: DeploymentHandle[Any], models: DeploymentHandle[Any]
    ) -> None:
        pool = CompilePool(compilers)
        model, http = settings.model, settings.http
        grammars = PreparedGrammars(pool, limits(settings), await pool.fingerprint())
        redis = open_redis(settings)
        super().__init__(
            Gateway(RequestReader(model.served_name, settings.grammar.whitespace, model.tool_call_parser), grammars, models),
            HealthReader(
                application,
                {MODEL: model.num_replicas, COMPILER: settings.grammar.compile_replicas},
                redis.ping if redis else None,
            ),
            MetricsPage(),
            RequestMetrics(),
            served_name=model.served_name,
            api_keys=ApiKeys(key.get_secret_value() for key in http.api_keys),
            max_body_bytes=int(http.max_body_mib * 2**20),
        )
