"""HTTP in front of the gateway: OpenAI endpoints, named grammars, health, metrics. `routes` binds it to paths."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from deployments.access.api_keys import ApiKeys
from deployments.access.caller import Caller, Scope
from deployments.access.gate import Gate, Visit
from deployments.api.bounds.admission import AdmissionQueue, RefusalDelay
from deployments.api.bounds.body import parse_body
from deployments.api.bounds.places import Places
from deployments.api.bounds.reading import BodyReader, HeldBody
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.engine_errors import engine_error
from deployments.api.gateway import Gateway
from deployments.api.health import HealthReader
from deployments.api.http.background import BackgroundResponses
from deployments.api.http.leaving import CLIENT_CLOSED_REQUEST, ClientLeft, before, while_connected
from deployments.api.http.pieces import PiecewiseResponse
from deployments.api.translation.apis import Api
from deployments.api.translation.exchange import Exchange, Items
from deployments.api.translation.responses_api import BackgroundExchange
from deployments.config import LimitSettings
from deployments.errors import INGRESS_BUSY, ApiError, bad_request, translated, unavailable
from deployments.grammars.registry import PAGE, GrammarRegistry
from deployments.telemetry.cluster import cluster_summary
from deployments.telemetry.metrics import RequestMetrics
from deployments.telemetry.page import MetricsPage
from grammar_service.errors import MaskcastError
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.replies import Head

EVENT_STREAM = "text/event-stream"
JSON = "application/json"
LAST_WORD_S = 1.0
TENANT = "tenant"
"""What an admin's query says whose grammar he means by."""
BODY_UNREAD = frozenset({"body_timeout", "body_too_large", "headers_too_large", INGRESS_BUSY})
"""Errors that are answered before the body has been read. They close the connection; otherwise the rest of the body would be read."""


class HttpIngress:
    """Every request is answered: with a result, or with an error in OpenAI's form. Where nothing else is said, methods raise ApiError."""

    def __init__(
        self,
        gateway: Gateway,
        registry: GrammarRegistry,
        health: HealthReader,
        page: MetricsPage,
        metrics: RequestMetrics,
        *,
        served_names: tuple[str, ...],
        context_length: int,
        api_keys: ApiKeys,
        gate: Gate,
        max_body_bytes: int,
        limits: LimitSettings,
        max_ongoing: int,
        max_held_bytes: int,
        thread: BackgroundThread,
        background: BackgroundResponses,
    ) -> None:
        self._gateway = gateway
        self._registry = registry
        self._health = health
        self._page = page
        self._metrics = metrics
        self._served_names = served_names
        self._context_length = context_length
        self._api_keys = api_keys
        self._gate = gate
        self._limits = limits
        self._places = Places(max_ongoing)
        self._thread = thread
        self._background = background
        self._background_places = Places(max(1, max_ongoing // 2))
        self._admissions = AdmissionQueue()
        self._bodies = BodyReader(max_body_bytes, limits.read_timeout_s, max_held_bytes, self._admissions)
        self._refusal_delay = RefusalDelay()
        self._started = int(time.time())

    async def answer(self, api: Api, request: Request) -> Response:
        """Answer one HTTP request; every error becomes a body of the API's form."""
        call, is_busy = _Call(api), False
        try:
            caller = self.authorize(request, Scope.GENERATE)
            call.tenant = caller.name
            self._take_place(caller.name)
            call.has_place = True
            await self._admissions.admit(caller.name)
            call.body = await self._bodies.read(request, caller.name)
            limits = caller.bounds.within(self._limits)
            body, size = await self._parsed(call.body, limits, caller.name), len(call.body.raw)
            call.body.raw.clear()
            until = asyncio.get_running_loop().time() + limits.request_timeout_s
            async with before(until), while_connected(request):
                exchange = await api.exchange(body, caller, size, call.body.reserve_beside)
                call.visit = await self._gate.enter(caller, api.endpoint, exchange.body)
                asked = call.visit.metered(exchange.body)
                items = self._gateway.answer(api.endpoint, asked, caller, max(size, exchange.size), call.visit.meter, exchange.warnings)
                if isinstance(exchange, BackgroundExchange):
                    response = await self._start_in_background(items, exchange, call, until)
                else:
                    response = await self._answered(items, exchange, call, until)
        except (ClientLeft, ClientDisconnect):
            response = Response(status_code=CLIENT_CLOSED_REQUEST)
        except MaskcastError as error:
            response = error_response(refusal := translated(error), call.visit.headers, api)
            is_busy = refusal.code == INGRESS_BUSY
            del refusal  # breaks a reference cycle: error, traceback, this frame, and the body
        except BaseException:
            self._leave_place(call)
            call.visit.leave()
            raise
        if not isinstance(response, _EventStream | PiecewiseResponse | _BackgroundStarted):
            self._finish(call, response.status_code)
        if is_busy:
            await self._refusal_delay.wait()
        return response

    async def refused(self, error: ApiError) -> Response:
        """The response for an error that another method raised."""
        if error.code == INGRESS_BUSY:
            await self._refusal_delay.wait()
        return error_response(error)

    async def _answered(self, items: Items, exchange: Exchange, call: _Call, until: float) -> Response:
        items = exchange.answer(items)
        head = await anext(items)
        assert isinstance(head, Head)
        if head.stream:
            return _EventStream(items, call.visit, until, exchange.failed, lambda: self._finish(call, head.status))
        async with aclosing(items):
            content = "".join([str(piece) async for piece in items])
        if head.status >= HTTPStatus.BAD_REQUEST:
            return error_response(engine_error(head.status, json.loads(content)), call.visit.headers, call.api)

        async def ended() -> None:
            self._finish(call, head.status)

        return self.whole(call.visit.piece(content), head.status, call.visit.headers, ended)

    async def _start_in_background(self, items: Items, exchange: BackgroundExchange, call: _Call, until: float) -> Response:
        """The request keeps its place and its memory until its answer is stored. All such requests have half of the places."""
        if not self._background_places.has_one_for(call.tenant):
            raise unavailable("Too many responses are made in the background; try again in a moment.", INGRESS_BUSY)
        self._background_places.take(call.tenant)
        try:
            await exchange.start()
        except BaseException:
            self._background_places.give_back(call.tenant)
            raise

        def ended(status: int) -> None:
            self._background_places.give_back(call.tenant)
            self._finish(call, status)

        begun = msgspec.json.encode(exchange.response)
        self._background.start(exchange, items, until, ended)
        return _BackgroundStarted(begun, HTTPStatus.OK, call.visit.headers, JSON)

    def whole(self, content: bytes | str, status: int, headers: Mapping[str, str], ended: Callable[[], Awaitable[None]]) -> Response:
        """A JSON body that may be large. `ended`: see PiecewiseResponse."""
        return PiecewiseResponse(content, status, headers, JSON, ended, self._limits.write_timeout_s)

    def _finish(self, call: _Call, status: int) -> None:
        self._leave_place(call)
        call.visit.leave()
        self._metrics.finished(call.api.name, status, time.monotonic() - call.started, call.tenant)

    def _take_place(self, tenant: str) -> None:
        if not self._places.has_one_for(tenant):
            raise unavailable("The service is full; try again in a moment.", INGRESS_BUSY)
        self._places.take(tenant)

    def _leave_place(self, call: _Call) -> None:
        if call.has_place:
            self._places.give_back(call.tenant)
        if call.body is not None:
            call.body.release()

    async def register_grammar(self, request: Request) -> Response:
        """Name a grammar: 201, or 200 where it has this name already."""
        caller = self.authorize(request, Scope.GRAMMARS_WRITE)
        async with self.counted(caller) as headers:
            held = await self._bodies.read(request, caller.name)
            try:
                body = await self._parsed(held, self._limits, caller.name)
                async with while_connected(request):
                    grammar, is_new = await self._registry.register(body, caller.name)
            finally:
                held.release()
        return JSONResponse(grammar, HTTPStatus.CREATED if is_new else HTTPStatus.OK, headers)

    async def check_grammar(self, request: Request) -> Response:
        """How the constraint of a chat would be kept."""
        caller = self.authorize(request, Scope.GENERATE)
        async with self.counted(caller) as headers:
            held = await self._bodies.read(request, caller.name)
            try:
                body, size = await self._parsed(held, caller.bounds.within(self._limits), caller.name), len(held.raw)
                async with while_connected(request):
                    return JSONResponse(await self._gateway.check(body, caller, size), headers=headers)
            finally:
                held.release()

    async def list_grammars(self, request: Request) -> Response:
        """A page of the caller's named grammars, at most `limit`, `after` a name. An admin's are everybody's, or those of the `tenant` in
        the query."""
        caller = self.authorize(request)
        everybodys = caller.may(Scope.ADMIN) and TENANT not in request.query_params and caller.name
        limit = request.query_params.get("limit", str(PAGE))
        if not (limit.isascii() and limit.isdigit() and len(limit) < 4 and 1 <= int(limit) <= PAGE):
            raise bad_request(f"'limit' must be a number from 1 to {PAGE}.", "limit")
        tenant, after = None if everybodys else _tenant(caller, request), request.query_params.get("after", "")
        async with self.counted(caller) as headers, while_connected(request):
            return JSONResponse(await self._registry.list_page(after, int(limit), tenant), headers=headers)

    async def grammar(self, request: Request) -> Response:
        caller = self.authorize(request)
        name, tenant = request.path_params["name"], _tenant(caller, request)
        async with self.counted(caller) as headers, while_connected(request):
            return JSONResponse(await self._registry.get(name, tenant), headers=headers)

    async def delete_grammar(self, request: Request) -> Response:
        caller = self.authorize(request, Scope.GRAMMARS_WRITE)
        name, tenant = request.path_params["name"], _tenant(caller, request)
        async with self.counted(caller) as headers:
            return JSONResponse(await self._registry.delete(name, tenant), headers=headers)

    @asynccontextmanager
    async def counted(self, caller: Caller) -> AsyncIterator[Mapping[str, str]]:
        """A place for a request that asks no engine, and the headers of its answer."""
        async with self.hold_place(caller), self._gate.counted(caller) as headers:
            yield headers

    @asynccontextmanager
    async def hold_place(self, caller: Caller) -> AsyncIterator[None]:
        """A place for a request that the limits of keys do not count."""
        self._take_place(caller.name)
        try:
            await self._admissions.admit(caller.name)
            async with before(asyncio.get_running_loop().time() + self._limits.request_timeout_s):
                yield
        finally:
            self._places.give_back(caller.name)

    @property
    def held_bytes(self) -> int:
        """What request bodies take."""
        return self._bodies.held

    def hold(self, tenant: str) -> HeldBody:
        """Reserves memory for a request without a body."""
        return self._bodies.hold(tenant)

    async def models(self, request: Request) -> Response:
        self.authorize(request)
        return JSONResponse({"object": "list", "data": [self._model(name) for name in self._served_names]})

    async def model(self, request: Request) -> Response:
        self.authorize(request)
        if (name := request.path_params["name"]) not in self._served_names:
            raise ApiError(HTTPStatus.NOT_FOUND, f"The model {name!r} does not exist.", code="model_not_found", param="model")
        return JSONResponse(self._model(name))

    async def ready(self, _: Request) -> Response:
        health = await self._health.read()
        return JSONResponse(health.body(), HTTPStatus.OK if health.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def cluster(self, request: Request) -> Response:
        """Readiness and figures of the whole cluster."""
        self.authorize(request, Scope.METRICS)
        health, families = await self._health.read(), await self._page.families()
        return JSONResponse({"object": "cluster", **health.body(), **cluster_summary(families)})

    async def metrics(self, request: Request) -> Response:
        self.authorize(request, Scope.METRICS)
        return Response(await self._page.read(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def _model(self, name: str) -> dict[str, Any]:
        """As vLLM's server tells it: clients look at the length of the context."""
        served = {"id": name, "object": "model", "created": self._started, "owned_by": "maskcast"}
        return {**served, "root": name, "parent": None, "max_model_len": self._context_length}

    def authorize(self, request: Request, scope: Scope | None = None) -> Caller:
        """Who calls, with this scope. Anthropic's clients have a header of their own for keys. Raises ApiError (401, 403)."""
        key = request.headers.get("x-api-key")
        caller = self._api_keys.check(request.headers.get("authorization") or (f"Bearer {key}" if key else None))
        if scope is not None:
            caller.require(scope)
        return caller

    async def _parsed(self, body: HeldBody, limits: LimitSettings, tenant: str) -> dict[str, Any]:
        raw = bytes(body.raw)
        if len(raw) <= LARGE_BODY:
            return parse_body(raw, limits)
        return await self._thread.run(tenant, parse_body, raw, limits)


@dataclass(slots=True)
class _Call:
    """What is known of a request while it is answered; until it has entered, its visit costs nothing."""

    api: Api
    tenant: str = ""
    has_place: bool = False
    body: HeldBody | None = None
    visit: Visit = field(default_factory=Visit)
    started: float = field(default_factory=time.monotonic)


class _BackgroundStarted(Response):
    """The request goes on after this response: it keeps its place."""


class _EventStream(StreamingResponse):
    """Closes the items and calls `ended` whatever happens, also where the client has left before the first one. `until`, by the event
    loop's clock, it has to be over."""

    def __init__(self, items: Items, visit: Visit, until: float, failed: Callable[[ApiError], str], ended: Callable[[], None]) -> None:
        super().__init__(_events(items, visit, failed), headers=visit.headers, media_type=EVENT_STREAM)
        self._items = items
        self._until = until
        self._failed = failed
        self._ended = ended

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        # In place of Starlette's own way, which makes a group of tasks for each answer.
        try:
            async with before(self._until), while_connected(Request(scope, receive)):
                await self.stream_response(send)
        except ClientLeft:
            pass
        except ApiError as late:
            await _end(send, self._failed(late))
        finally:
            await self._items.aclose()
            self._ended()


async def _end(send: Send, last: str) -> None:
    """The end of a stream that has begun, for a client that may have stopped reading."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORD_S):
            await send({"type": "http.response.body", "body": last.encode(), "more_body": False})


async def _events(items: Items, visit: Visit, failed: Callable[[ApiError], str]) -> AsyncGenerator[str, None]:
    try:
        async for piece in items:
            yield visit.piece(str(piece))
    except MaskcastError as error:  # the status is sent; the client learns of it from an event
        yield failed(translated(error))


def _tenant(caller: Caller, request: Request) -> str:
    """Whose grammars a request is about. Raises ApiError (403)."""
    named = request.query_params.get(TENANT, caller.name)
    if named != caller.name:
        caller.require(Scope.ADMIN)
    return named


def error_response(error: ApiError, headers: Mapping[str, str] | None = None, api: Api | None = None) -> Response:
    """In the form of the API, or in OpenAI's."""
    body = error.body() if api is None else api.error(error)
    closing = {"Connection": "close"} if error.code in BODY_UNREAD else {}
    return JSONResponse(body, error.status, headers={**error.headers(), **closing, **(headers or {})})
