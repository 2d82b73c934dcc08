"""Whether and where a process sends its spans."""

from __future__ import annotations

import asyncio

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

from deployments.config import Settings
from deployments.tracing.tracing import Tracing

DELAY_MS = 1000
"""A span waits so long for others to be sent with."""
TIMEOUT_S = 5.0
"""For a collector that does not answer; the request is long over."""


def open_tracing(settings: Settings, component: str) -> Tracing | None:
    """The tracing of this process, which is a `component` of the service; None: requests are not to be traced."""
    telemetry = settings.telemetry
    if telemetry.otlp_endpoint is None:
        return None
    resource = Resource.create({"service.name": "maskcast", "maskcast.component": component})
    provider = TracerProvider(ParentBasedTraceIdRatio(telemetry.sample_ratio), resource)
    exporter = OTLPSpanExporter(telemetry.otlp_endpoint, timeout=TIMEOUT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=DELAY_MS))
    return Tracing(provider)


async def close_tracing(tracing: Tracing | None) -> None:
    """What is still to be sent is sent; the event loop goes on meanwhile."""
    if tracing is not None:
        await asyncio.to_thread(tracing.close)
