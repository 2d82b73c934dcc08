"""The ingress deployment's parts, put together where Ray Serve starts it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ray.serve.handle import DeploymentHandle

from deployments.api_keys import ApiKeys
from deployments.builders import limits, open_redis, open_registry
from deployments.call_sizes import CallSizes
from deployments.config import Settings
from deployments.gateway import Gateway
from deployments.health import COMPILER, MODEL, HealthReader
from deployments.ingress import IngressService
from deployments.pool import CompilePool
from deployments.prepared import PreparedGrammars
from deployments.protocol import RequestReader
from deployments.registration import settings_grammars
from deployments.registry import GrammarRegistry
from deployments.telemetry import GrammarMetrics, MetricsPage, RequestMetrics
from grammar_service.heap import settle_heap
from grammar_service.registry import GrammarEntry, GrammarNames


class FrontDoor(IngressService):
    """An `IngressService` that builds itself from the settings."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits constructors
        self, settings: Settings, application: str, compilers: DeploymentHandle[Any], models: DeploymentHandle[Any]
    ) -> None:
        pool = CompilePool(compilers)
        model, http = settings.model, settings.http
        grammars = PreparedGrammars(pool, limits(settings), await pool.fingerprint())
        registry = open_grammar_registry(settings, pool, grammars)
        redis = open_redis(settings)
        super().__init__(
            Gateway(request_reader(settings), grammars, registry, models, CallSizes(model.max_model_len)),
            registry,
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
        settle_heap()
        self._ahead = asyncio.create_task(registry.compile_ahead())

    async def __del__(self) -> None:
        # Ray Serve awaits this when it stops a replica, also one whose constructor failed.
        if hasattr(self, "_ahead"):
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
            await self._registry.close()


def request_reader(settings: Settings) -> RequestReader:
    model, grammar = settings.model, settings.grammar
    return RequestReader(model.served_name, grammar.whitespace, model.tool_call_parser, grammar.disable_additional_properties)


def open_grammar_registry(settings: Settings, pool: CompilePool, grammars: PreparedGrammars) -> GrammarRegistry:
    """The named grammars, whose store connects when it is first used."""
    store, now = open_registry(settings), int(time.time())
    fixed = {name: GrammarEntry(name, spec, now) for name, spec in settings_grammars(settings).items()}
    return GrammarRegistry(
        GrammarNames(fixed, store),
        store,
        pool,
        grammars.resolved,
        settings.grammar.max_registered,
        settings.grammar.whitespace,
        GrammarMetrics("registry").update,
        settings.grammar.disable_additional_properties,
    )
