"""A collector of OpenTelemetry's spans in this process: OTLP over HTTP (opentelemetry-proto 1.45), kept in memory."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATH = "/v1/traces"


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """Times in nanoseconds since the epoch; ids in hexadecimal, `parent` empty at the root. `component`: the process that has sent it."""

    name: str
    trace: str
    id: str
    parent: str
    component: str
    began_ns: int
    ended_ns: int
    error: str
    events: tuple[str, ...]
    attributes: dict[str, Any]


class Collector:
    """`spans` of all traces, as they have come."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self._spans: list[SpanRecord] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._spans)

    def take(self, body: bytes) -> None:
        """One message of an exporter."""
        spans = list(_records(ExportTraceServiceRequest.FromString(body)))
        with self._lock:
            self._spans += spans

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace that are there, the oldest first."""
        with self._lock:
            return sorted((span for span in self._spans if span.trace == trace_id), key=lambda span: span.began_ns)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listens on a free port of the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.collector = Collector(server.server_port)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.collector  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:  # http.server names it
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nobody reads a line for each message."""


def _records(message: ExportTraceServiceRequest) -> Iterator[SpanRecord]:
    for resource in message.resource_spans:
        told = _attributes(resource.resource.attributes)
        component = str(told.get("maskcast.component", "vllm" if "vllm.process_id" in told else ""))
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield SpanRecord(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    component,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else "",
                    tuple(event.name for event in span.events),
                    _attributes(span.attributes),
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs if pair.value.WhichOneof("value")}
