"""Spans of one process (OpenTelemetry 1.45), and how they name their parents in other processes (W3C Trace Context)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Literal, Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PREFIX = "maskcast."
HEADER = "traceparent"
Value = str | int | float | bool
Role = Literal["internal", "server", "client"]
_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
_PROPAGATOR = TraceContextTextMapPropagator()


class Span:
    """One part of a request's way, until it is ended; as a context manager it is `current` inside, and ended behind it. Inside of
    generators, only what is `current` between two items may be used: their caller goes on in the same context."""

    __slots__ = ("_span", "_using")

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def is_recording(self) -> bool:
        """Whether the request is traced; where it is not, its span is still told to others, so that they know."""
        return self._span.is_recording()

    @property
    def traceparent(self) -> str:
        """How others name it as their parent; empty where there is nothing to name."""
        context = self._span.get_span_context()
        if not context.is_valid:
            return ""
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def set(self, **attributes: Value) -> None:
        """Ours, whose names get `maskcast.` in front."""
        for name, value in attributes.items():
            self._span.set_attribute(PREFIX + name, value)

    def standard(self, name: str, value: Value) -> None:
        """An attribute of OpenTelemetry's conventions."""
        self._span.set_attribute(name, value)

    def mark(self, event: str) -> None:
        """Something happens now."""
        self._span.add_event(event)

    def fail(self, what: str) -> None:
        """It ends with an error: a code, no text that a user has sent."""
        self._span.set_status(Status(StatusCode.ERROR, what))
        self._span.set_attribute("error.type", what)

    def end(self, at_ns: int | None = None) -> None:
        self._span.end(at_ns)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Spans that name no parent are below it."""
        with trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            yield

    def __enter__(self) -> Self:
        self._using = self.current()
        self._using.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None:
            self.fail(code_of(error))
        self._using.__exit__(None, None, None)
        self.end()


class Tracing:
    """`close` sends what has not been sent yet; it waits for that."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("maskcast")

    def span(self, name: str, role: Role = "internal", parent: str = "", began_ns: int | None = None, **attributes: Value) -> Span:
        """A new one, below `parent` (a `traceparent`) or the current one. `began_ns`: since the epoch, now if None."""
        own = {PREFIX + name: value for name, value in attributes.items()}
        return Span(self._tracer.start_span(name, _context(parent), _KINDS[role], own, start_time=began_ns))

    def current(self) -> Span:
        """The one that is current; where none is, one that records nothing."""
        return Span(trace.get_current_span())

    def close(self) -> None:
        self._provider.shutdown()


def current_trace_id() -> str:
    """Of the request that is current, in hexadecimal; empty where it is not recorded."""
    span = trace.get_current_span()
    return f"{span.get_span_context().trace_id:032x}" if span.is_recording() else ""


def code_of(error: BaseException) -> str:
    """What is told of an error: its code, or its kind, since messages may quote a request."""
    return str(getattr(error, "code", "") or type(error).__name__)


def monotonic_epoch_ns() -> int:
    """When `time.monotonic` of this machine's processes was zero, in nanoseconds since the epoch."""
    return time.time_ns() - time.monotonic_ns()


def _context(parent: str) -> Context | None:
    """None: whatever is current."""
    return _PROPAGATOR.extract({HEADER: parent}, Context()) if parent else None
