"""The model's deployment: a `ModelReplica` in Ray Serve's clothes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from ray import get_runtime_context, serve
from ray.serve.handle import DeploymentHandle

from deployments.answers.frames import ReplyTo
from deployments.answers.sender import AnswerSender
from deployments.builders import engine_settings, limits, open_cache, secret
from deployments.config import Settings
from deployments.grammars.pool import CompilePool
from deployments.loop_watch import LoopWatch
from deployments.names import MODEL
from deployments.replica_process import listen_on_node_only, tell_children
from deployments.replicas.broadcasting import NodeMasks
from deployments.replicas.rewarding import named_rewards
from deployments.replicas.traced import TracedReplica
from deployments.telemetry.handed_on import VLLM, HandedOn
from deployments.telemetry.logs import about_request, handlers_kept, log_json, trace_id_of
from deployments.telemetry.metrics import EngineMetrics, GrammarMetrics, JumpMetrics, LookaheadMetrics
from deployments.tracing.opening import close_tracing, open_tracing
from grammar_service.compiler.source import GrammarSource
from grammar_service.heap import settle_heap
from model_service.core_figures import CoreFigures
from model_service.messages import Call, ReplicaStatus
from model_service.replica import ModelReplica

Rewards: TypeAlias = Mapping[str, DeploymentHandle[Any]]
"""The deployments of rewards, by the names that requests call them."""


class ModelDeployment:
    """One model replica; ready when its engine has answered its warm-up."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self, settings: Settings, compilers: DeploymentHandle[Any], rewards: Rewards
    ) -> None:
        if settings.telemetry.logs == "json":
            log_json(MODEL)
        listen_on_node_only()
        self._loop_watch = LoopWatch()
        self._loop_watch.start()
        tell_children()
        pool = CompilePool(compilers)

        async def open_source() -> GrammarSource:
            return GrammarSource(
                open_cache(settings),
                pool.compile,
                secret(settings),
                await pool.fingerprint(),
                limits(settings),
                settings.redis.head_start_ms / 1000,
            )

        self._answers = AnswerSender(get_runtime_context().get_node_id())
        context = serve.get_replica_context()
        name = context.replica_id.unique_id
        model = settings.model
        self._masks = NodeMasks(context.app_name, model.grammar_memory_mib << 20) if model.masks == "broadcaster" else None
        if self._masks is not None:
            await self._masks.want()
        mask_socket = self._masks.socket_name if self._masks is not None else None
        named = named_rewards(rewards, settings.model.reward_deadline_s)
        self._replica = ModelReplica(engine_settings(settings, mask_socket), open_source, name, named)
        self._metrics = GrammarMetrics("model")
        self._jumps = JumpMetrics(context.deployment)
        self._lookaheads = LookaheadMetrics(context.deployment)
        self._engine = EngineMetrics(context.deployment, name)
        self._vllm = HandedOn(VLLM, {"ReplicaId": name})
        self._told = CoreFigures()
        with handlers_kept():
            await self._replica.start()
        # After the engine, whose processes are none of ours to send for.
        self._tracing = open_tracing(settings, MODEL)
        self._answering = self._replica if self._tracing is None else TracedReplica(self._replica, name, self._tracing)
        settle_heap()

    async def respond(self, call: Call, reply_to: ReplyTo) -> None:
        """Returns when the caller has all of the answer, which goes its own way."""
        about_request(call.request_id, call.tenant, trace_id_of(call.trace))
        await self._answers.send(reply_to, self._answering.respond(call))

    async def status(self) -> ReplicaStatus:
        return await self._replica.status()

    async def record_routing_stats(self) -> dict[str, Any]:
        """What the router goes by (`router.replica_load.LoadReport`); Ray Serve asks for it every second."""
        status, earlier = await self._replica.status(), self._told
        self._told = status.core
        return {
            "taken_at": time.time(),
            "requests": status.running,
            "prefill_tokens": status.outstanding_prefill_tokens,
            "step_tokens": status.step_tokens,
            "step_ms": status.core.step_ms(earlier),
        }

    async def _publish(self, status: ReplicaStatus) -> None:
        self._metrics.update(status.grammar)
        self._jumps.update(status.jumps)
        self._lookaheads.update(status.lookaheads)
        self._engine.update(status)
        await self._vllm.publish()

    async def check_health(self) -> None:
        if self._masks is not None:
            self._masks.keep()
        await self._replica.check_health()
        await self._publish(await self._replica.status())

    async def __del__(self) -> None:
        # Ray Serve awaits this when it stops a replica, also one whose constructor failed.
        self._loop_watch.stop()
        if hasattr(self, "_replica"):
            await self._replica.close()
            await self._answers.close()
        await close_tracing(getattr(self, "_tracing", None))
