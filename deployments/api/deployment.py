"""The Ray Serve deployment of the ingress."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from ray import get_runtime_context
from ray.serve.handle import DeploymentHandle
from ray.util import get_node_ip_address

from deployments.access.use_elsewhere import UseElsewhere
from deployments.answers.frames import ReplyTo
from deployments.answers.receiver import AnswerReceiver
from deployments.answers.sender import AnswerSender
from deployments.api.api_server import ApiServer
from deployments.api.engine_calls import EngineCalls
from deployments.builders import COUNTING_MS, open_link
from deployments.config import Settings
from deployments.grammars.pool import CompilePool
from deployments.grammars.traced import TracedPool
from deployments.loop_watch import LoopWatch
from deployments.names import INGRESS
from deployments.replica_process import listen_on_node_only
from deployments.telemetry.logs import log_json
from deployments.tracing.opening import close_tracing, open_tracing
from grammar_service.artifacts.cache.link import LinkCounters


class ByHandle:
    """What other jobs of the cluster call, of a deployment with an API server. All raise ApiError."""

    _api: ApiServer
    _answers: AnswerSender

    async def generate(self, endpoint: str, body: Mapping[str, Any], traceparent: str = "") -> dict[str, Any]:
        """See `ApiServer.generate`."""
        return await self._api.generate(endpoint, body, traceparent)

    async def generate_stream(self, endpoint: str, body: Mapping[str, Any], traceparent: str = "") -> AsyncGenerator[str, None]:
        """See `ApiServer.generate_stream`."""
        async with aclosing(self._api.generate_stream(endpoint, body, traceparent)) as pieces:
            async for piece in pieces:
                yield piece

    async def send_stream(self, endpoint: str, body: Mapping[str, Any], reply_to: ReplyTo, traceparent: str = "") -> None:
        """The same, whose pieces go their own way. Returns when the caller has all of them."""
        await self._answers.send(reply_to, self._api.generate_stream(endpoint, body, traceparent))

    async def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See `ApiServer.register_grammar`."""
        return await self._api.register_grammar(body)

    async def check_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See `ApiServer.check_grammar`."""
        return await self._api.check_grammar(body)

    async def grammars(self, after: str = "") -> dict[str, Any]:
        """A page of the named grammars, `after` one of them."""
        return await self._api.grammars(after)

    async def grammar(self, name: str) -> dict[str, Any]:
        return await self._api.grammar(name)

    async def delete_grammar(self, name: str) -> dict[str, Any]:
        return await self._api.delete_grammar(name)


class IngressDeployment(ByHandle):
    """One ingress; it calls the model replicas through a router."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits constructors
        self, settings: Settings, application: str, compilers: DeploymentHandle[Any], models: DeploymentHandle[Any]
    ) -> None:
        listen_on_node_only()
        self._loop_watch = LoopWatch()
        self._loop_watch.start()
        if settings.telemetry.logs == "json":
            log_json(INGRESS)
        self._tracing = open_tracing(settings, INGRESS)
        pool = CompilePool(compilers) if self._tracing is None else TracedPool(compilers, self._tracing)
        node = get_runtime_context().get_node_id()
        self._answers, self._receiver = AnswerSender(node), AnswerReceiver(node, get_node_ip_address())
        await self._receiver.start()
        self._elsewhere = open_use_elsewhere(settings)
        engines = EngineCalls(models, self._receiver, self._elsewhere)
        self._api = ApiServer(settings, application, pool, await pool.fingerprint(), engines, self._tracing)
        self._loop_watch.heap.held_bytes = self._api.held_bytes

    async def __del__(self) -> None:
        # Ray Serve awaits this when it stops a replica, also one whose constructor failed.
        self._loop_watch.stop()
        if hasattr(self, "_api"):
            await self._api.close()
            await self._answers.close()
            await self._receiver.close()
            if self._elsewhere is not None:
                await self._elsewhere.close()
        await close_tracing(getattr(self, "_tracing", None))


def open_use_elsewhere(settings: Settings) -> UseElsewhere | None:
    """None where there is no other ingress, or no Redis to hear of it by."""
    link = open_link(settings, LinkCounters(), COUNTING_MS) if settings.http.num_replicas > 1 else None
    return None if link is None else UseElsewhere(link, settings.redis.namespace)
