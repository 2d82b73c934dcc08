"""The API server: the gateway with HTTP in front of it, and the methods that other jobs of the cluster call by handle."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp

from deployments.access.api_keys import ApiKeys
from deployments.access.caller import ANYBODY
from deployments.access.gate import Gate
from deployments.access.ledger import Ledger
from deployments.access.prefixes import TenantPrefixes
from deployments.access.shared_window import SharedWindow
from deployments.api.bounds.connection import ConnectionBounds
from deployments.api.bounds.request_filter import RequestFilter, RequestRules, is_loopback
from deployments.api.call_facts import CallFacts
from deployments.api.checking import AnswerChecker
from deployments.api.constraining import Constraining, Constraints
from deployments.api.engine_calls import Engines
from deployments.api.engine_errors import engine_error
from deployments.api.gateway import Gateway
from deployments.api.health import HealthReader, running_replicas
from deployments.api.http.background import BackgroundResponses
from deployments.api.http.ingress import HttpIngress
from deployments.api.http.responses import StoredResponses
from deployments.api.http.routes import http_application
from deployments.api.http.server import HttpServer
from deployments.api.http.traced import TracedHttp
from deployments.api.logged import LoggedConstraints
from deployments.api.protocol import RequestReader
from deployments.api.request_fields.kinds import FieldRules
from deployments.api.traced import TracedCalls, TracedConstraints, TracedEngines
from deployments.api.translation.apis import Api, Apis, CountTokensApi, GatewayApi, MessagesApi
from deployments.api.translation.exchange import Items
from deployments.api.translation.response_store import MemoryResponses, RedisResponses, ResponseStore
from deployments.api.translation.responses_api import BackgroundExchange, ResponsesApi
from deployments.builders import COUNTING_MS, engine_seats, limits, open_link, open_redis, open_registry, registry_room, secret
from deployments.config import Settings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.model_parsers import WITHOUT_BUDGET, refusals
from deployments.constraints.tool_calls.formats import TOOL_FORMATS
from deployments.errors import bad_request
from deployments.grammars.pool import CompilePool
from deployments.grammars.prepared import PreparedGrammars
from deployments.grammars.registration import settings_grammars
from deployments.grammars.registry import GrammarRegistry
from deployments.names import COMPILER, MODEL
from deployments.playground.files import playground_routes
from deployments.telemetry.logs import LoggedRequests
from deployments.telemetry.metrics import CheckMetrics, GrammarMetrics, RequestMetrics
from deployments.telemetry.page import MetricsPage
from deployments.tracing.tracing import Tracing, current_trace_id
from grammar_service.artifacts.cache.link import LinkCounters
from grammar_service.heap import settle_heap, unmap_large_blocks
from grammar_service.registry import GrammarEntry, GrammarNames
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.messages import Endpoint
from model_service.replies import Head
from router.turns.shares import seats_for_one

logger = logging.getLogger(__name__)
RESPONSES_MS = 1000
"""A conversation of several megabytes takes a while."""


class ApiServer:
    """Listens for HTTP from its making on; `engines` are asked for answers. `tracing` None: no request is traced, and nothing stands in its
    way for that."""

    def __init__(
        self,
        settings: Settings,
        application: str,
        pool: CompilePool,
        fingerprint: str,
        engines: Engines,
        tracing: Tracing | None = None,
    ) -> None:
        """Raises OSError: the address is not this machine's, or taken by another program; SettingsError: the key file is wrong."""
        self._grammars = PreparedGrammars(pool, limits(settings), fingerprint)
        thread = BackgroundThread()
        self._registry = open_grammar_registry(settings, pool, self._grammars, thread)
        constraints: Constraints = Constraining(self._grammars, self._registry)
        if is_logged := settings.telemetry.logs == "json":
            constraints = LoggedConstraints(constraints, current_trace_id)
        if tracing is not None:
            constraints, engines = TracedConstraints(constraints, tracing), TracedEngines(engines, tracing)
        checker = AnswerChecker(pool.judge, CheckMetrics().count, settings.grammar.check_retries, settings.grammar.check_deadline_s)
        facts = CallFacts(settings.model.longest, settings.limits.max_tokens)
        prefixes = tenant_prefixes(settings)
        self._gateway = Gateway(request_reader(settings), constraints, engines, facts, checker, prefixes, thread)
        self._apis = open_apis(settings, thread)
        self._background = BackgroundResponses(self._apis.responses)
        self._calls = TracedCalls(tracing) if tracing is not None else None
        longest, most = settings.model.longest, settings.limits.max_tokens
        self._gate = Gate(open_ledger(settings), lambda body: facts.prompt(body).tokens, longest, most)
        self._http = HttpIngress(
            self._gateway,
            self._registry,
            health_reader(settings, application),
            MetricsPage(everything=settings.http.metrics == "all"),
            LoggedRequests(current_trace_id) if is_logged else RequestMetrics(),
            served_names=settings.model.served_names,
            context_length=settings.model.longest,
            api_keys=api_keys(settings),
            gate=self._gate,
            max_body_bytes=int(settings.http.max_body_mib * 2**20),
            limits=settings.limits,
            max_ongoing=settings.http.max_ongoing_requests,
            max_held_bytes=int(settings.http.max_bodies_mib * 2**20),
            thread=thread,
            background=self._background,
        )
        settle_heap()
        unmap_large_blocks()
        self._server = self._made_server(settings, tracing)
        self._drain_s = settings.http.leave_s + settings.http.drain_s
        self._server.start()
        self._ahead = asyncio.create_task(self._registry.compile_ahead())

    def _made_server(self, settings: Settings, tracing: Tracing | None) -> HttpServer:
        rules, listening = RequestRules.of(settings), settings.http
        bounds = ConnectionBounds(
            settings.limits.read_timeout_s,
            settings.limits.write_timeout_s,
            rules.max_header_bytes,
            max_connections=listening.max_connections,
        )
        stored = StoredResponses(self._http, self._apis.responses)
        playground = playground_routes() if listening.page else []
        application = http_application(self._http, stored, self._apis, lambda: self._server.is_leaving, playground)
        answering: ASGIApp = RequestFilter(application, rules)
        if tracing is not None:
            answering = TracedHttp(answering, tracing)
        return HttpServer(answering, listening.host, listening.port, bounds, listening.drain_s, listening.leave_s)

    def held_bytes(self) -> int:
        """What request bodies take."""
        return self._http.held_bytes

    async def close(self) -> None:
        """Answers what is under way, for a while."""
        until = time.monotonic() + self._drain_s
        await self._server.close()
        await self._background.close(until - time.monotonic())
        await self._gate.close()
        await self._apis.responses.close()
        self._ahead.cancel()
        await asyncio.gather(self._ahead, return_exceptions=True)
        await self._registry.close()
        await self._grammars.close()

    async def generate(self, endpoint: str, body: Mapping[str, Any], traceparent: str = "") -> dict[str, Any]:
        """The response object of a request that does not stream. `traceparent`: the caller's span, where requests are traced. Raises
        ApiError."""
        async with aclosing(self._asked(self._apis.named(endpoint), {**body, "stream": False}, traceparent)) as items:
            head = await anext(items)
            content = "".join([str(piece) async for piece in items])
        answer: dict[str, Any] = json.loads(content)
        if isinstance(head, Head) and head.status >= HTTPStatus.BAD_REQUEST:
            raise engine_error(head.status, answer)
        return answer

    async def generate_stream(self, endpoint: str, body: Mapping[str, Any], traceparent: str = "") -> AsyncGenerator[str, None]:
        """The event stream of a request, in pieces of whole events; `traceparent` as in `generate`. Raises ApiError."""
        async with aclosing(self._asked(self._apis.named(endpoint), {**body, "stream": True}, traceparent)) as items:
            head = await anext(items)
            async for piece in items:
                if isinstance(head, Head) and head.status >= HTTPStatus.BAD_REQUEST:
                    raise engine_error(head.status, json.loads(str(piece)))
                yield str(piece)

    def _asked(self, api: Api, body: Mapping[str, Any], traceparent: str) -> Items:
        items = self._answered(api, body)
        return items if self._calls is None else self._calls.answered(items, api.name, traceparent)

    async def _answered(self, api: Api, body: Mapping[str, Any]) -> Items:
        exchange = await api.exchange(body, ANYBODY, 0)
        if isinstance(exchange, BackgroundExchange):
            message = "'background' is for clients of HTTP: a job that calls by handle need not wait for what it gets."
            raise bad_request(message, "background", "unsupported_parameter")
        items = self._gateway.answer(api.endpoint, exchange.body, warnings=exchange.warnings)
        async with aclosing(exchange.answer(items)) as answered:
            async for item in answered:
                yield item

    async def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Name a grammar; the body is that of `POST /v1/grammars`. Raises ApiError."""
        grammar, _ = await self._registry.register(body)
        return grammar

    async def check_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """How the constraint of a chat would be kept; the body is that of `POST /v1/grammars/check`. Raises ApiError."""
        return await self._gateway.check(body)

    async def grammars(self, after: str = "") -> dict[str, Any]:
        """A page of the named grammars, `after` one of them. Raises ApiError."""
        return await self._registry.list_page(after)

    async def grammar(self, name: str) -> dict[str, Any]:
        """Raises ApiError."""
        return await self._registry.get(name)

    async def delete_grammar(self, name: str) -> dict[str, Any]:
        """Raises ApiError."""
        return await self._registry.delete(name)


def open_ledger(settings: Settings) -> Ledger:
    """What tenants use, whose connection to Redis opens when it is first used."""
    link = open_link(settings, LinkCounters(), COUNTING_MS)
    shared = SharedWindow(link, settings.redis.namespace, uuid4().hex) if link else None
    return Ledger(shared, settings.http.num_replicas)


def tenant_prefixes(settings: Settings) -> TenantPrefixes:
    return TenantPrefixes(secret(settings), shared=settings.tenants.share_prefixes)


def open_apis(settings: Settings, thread: BackgroundThread) -> Apis:
    model = settings.model
    responses = ResponsesApi(
        open_responses(settings),
        model.served_names[0],
        thread,
        strict=model.tool_call_parser in TOOL_FORMATS,
        most_bytes=int(settings.http.max_body_mib * 2**20),
        most_values=settings.limits.max_body_values,
    )
    is_bounded = model.reasoning_parser is not None and model.reasoning_parser not in WITHOUT_BUDGET
    messages, counting = (kind(is_bounded, thread) for kind in (MessagesApi, CountTokensApi))
    return Apis(GatewayApi(Endpoint.CHAT), GatewayApi(Endpoint.COMPLETION), responses, messages, counting)


def open_responses(settings: Settings) -> ResponseStore:
    """Where responses are kept; connects to Redis when it is first used, where there is one."""
    kept, link = settings.responses, open_link(settings, LinkCounters(), RESPONSES_MS)
    most_bytes = int(kept.max_mib * 2**20)
    if link is None:
        return MemoryResponses(kept.ttl_s, most_bytes)
    return RedisResponses(link, settings.redis.namespace, secret(settings), kept.ttl_s, most_bytes)


def api_keys(settings: Settings) -> ApiKeys:
    """Raises SettingsError: the key file is wrong."""
    file, host = settings.http.api_keys_file, settings.http.host
    if not settings.http.api_keys and file is None and not is_loopback(host):
        logger.warning("there are no API keys: whoever reaches %s may use the service (docs/guide/keys.md)", host)
    return ApiKeys((key.get_secret_value() for key in settings.http.api_keys), Path(file) if file else None, settings.tenants)


def health_reader(settings: Settings, application: str) -> HealthReader:
    redis = open_redis(settings)
    wanted = {MODEL: settings.model.num_replicas, COMPILER: settings.grammar.compile_replicas}
    return HealthReader(partial(running_replicas, application, wanted), wanted, redis.ping if redis else None)


def request_reader(settings: Settings) -> RequestReader:
    model, bounds = settings.model, settings.limits
    for refusal in refusals(model.tool_call_parser):
        logger.warning(refusal)
    if settings.http.api_keys or settings.http.api_keys_file:
        # What has no seat waits in the engine, ahead of other tenants.
        bounds = bounds.model_copy(update={"max_sequences": min(bounds.max_sequences, seats_for_one(engine_seats(settings)))})
    defaults, (served, *adapters) = ConstraintDefaults.of(settings.grammar), model.served_names
    thresholds = model.lookahead_defaults.model_dump()
    rules = FieldRules(
        bounds, frozenset(model.chat_template_kwargs), frozenset(model.vllm_xargs), model.has_priorities, model.takes_embeddings
    )
    return RequestReader(served, model.tool_call_parser, defaults, rules, tuple(adapters), thresholds, model.reasoning_parser)


def open_grammar_registry(
    settings: Settings, pool: CompilePool, grammars: PreparedGrammars, background: BackgroundThread
) -> GrammarRegistry:
    """The named grammars, whose store connects when it is first used."""
    store, now = open_registry(settings), int(time.time())
    fixed = {name: GrammarEntry(name, spec, now) for name, spec in settings_grammars(settings).items()}
    return GrammarRegistry(
        GrammarNames(fixed, store),
        store,
        pool,
        grammars.resolved,
        grammars.rules,
        registry_room(settings),
        ConstraintDefaults.of(settings.grammar),
        GrammarMetrics("registry").update,
        background,
    )
