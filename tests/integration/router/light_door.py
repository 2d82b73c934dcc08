"""An ingress without a server."""

from __future__ import annotations

import httpx

from deployments.access.api_keys import ApiKeys
from deployments.access.gate import Gate
from deployments.access.ledger import Ledger
from deployments.api.api_server import open_apis
from deployments.api.bounds.request_filter import RequestFilter, RequestRules
from deployments.api.gateway import Gateway
from deployments.api.health import HealthReader
from deployments.api.http.background import BackgroundResponses
from deployments.api.http.ingress import HttpIngress
from deployments.api.http.responses import StoredResponses
from deployments.api.http.routes import http_application
from deployments.api.translation.apis import Apis
from deployments.config import LimitSettings, Settings
from deployments.grammars.registry import GrammarRegistry
from deployments.telemetry.metrics import RequestMetrics
from deployments.telemetry.page import MetricsPage
from grammar_service.sandbox.background_thread import BackgroundThread

MOST_HELD = 2 << 20
MOST_ONGOING = 8


def door_of(
    gateway: Gateway,
    registry: GrammarRegistry,
    settings: Settings,
    keys: ApiKeys,
    read_s: float = 30.0,
    answer_s: float = 60.0,
    apis: Apis | None = None,
    background: BackgroundResponses | None = None,
) -> httpx.AsyncClient:
    """`read_s`: how long a body may take to come, `answer_s`: an answer."""
    thread = BackgroundThread()
    gate, apis = Gate(Ledger(None, 1), lambda _: 100, 2048), apis or open_apis(settings, thread)
    limits = LimitSettings(read_timeout_s=read_s, request_timeout_s=answer_s, max_body_values=1000)
    http = HttpIngress(
        gateway,
        registry,
        HealthReader(dict, {}, None),
        MetricsPage(),
        RequestMetrics(),
        served_names=settings.model.served_names,
        context_length=settings.model.longest,
        api_keys=keys,
        gate=gate,
        max_body_bytes=100_000,
        limits=limits,
        max_ongoing=MOST_ONGOING,
        max_held_bytes=MOST_HELD,
        thread=thread,
        background=background or BackgroundResponses(apis.responses),
    )
    transport = httpx.ASGITransport(
        RequestFilter(http_application(http, StoredResponses(http, apis.responses), apis), RequestRules.of(settings))
    )
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"Content-Type": "application/json"}, timeout=30)
