"""Spans that are kept where they are made: OpenTelemetry's own exporter to memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

from deployments.tracing.tracing import Tracing

SAMPLED, UNSAMPLED = (f"00-{'7' * 32}-{'8' * 16}-0{flag}" for flag in (1, 0))


class RecordedSpans:
    """`tracing` traces such a share of what has no parent."""

    def __init__(self, sample_ratio: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(ParentBasedTraceIdRatio(sample_ratio))
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that are ended, in the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


def told(span: ReadableSpan) -> dict[str, Any]:
    """Its attributes, ours without their prefix."""
    return {key.removeprefix("maskcast."): value for key, value in (span.attributes or {}).items()}


def parent(span: ReadableSpan) -> str:
    """The id of its parent, in hexadecimal; empty at the root."""
    return f"{span.parent.span_id:016x}" if span.parent else ""


def own(span: ReadableSpan) -> str:
    """Its id."""
    assert span.context is not None
    return f"{span.context.span_id:016x}"
