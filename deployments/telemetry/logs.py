"""Log lines that machines read: a JSON object each, those about a request with its id, its trace and its tenant's name."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import MemoryHandler
from types import MappingProxyType
from typing import Any, TextIO

from deployments.telemetry.metrics import RequestMetrics

REQUESTS = "maskcast.requests"
"""The logger of the line that each request ends with."""
RAY_SERVE = "ray.serve"
FIELDS = "fields"
"""What a record has besides its message."""
_NOBODY: Mapping[str, str] = MappingProxyType({})
_about: ContextVar[Mapping[str, str]] = ContextVar("about", default=_NOBODY)


class JsonLines(logging.Formatter):
    """`component` is the process's part in the service."""

    def __init__(self, component: str) -> None:
        super().__init__()
        self._component = component

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "component": self._component,
            "process": os.getpid(),
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        for name, value in _about.get().items():
            line.setdefault(name, value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_json(component: str, stream: TextIO | None = None) -> None:
    """From now on whatever this process logs, and has no handler of its own, goes to `stream` (stderr if None) as JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(component))
    logging.getLogger().handlers = [handler]
    logging.getLogger(REQUESTS).setLevel(logging.INFO)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Libraries that configure logging for themselves inside this block (`logging.config.dictConfig`, as vLLM does when it is imported)
    close the handlers of all others. Those of Ray Serve (2.60) hand on what they gather to a file; closed, they forget which one. Then what
    is logged is gathered and never written, and a controller that comes back replaces each replica whose log file it is not told."""
    gathering = [each for each in logging.getLogger(RAY_SERVE).handlers if isinstance(each, MemoryHandler)]
    targets = [each.target for each in gathering]
    try:
        yield
    finally:
        for handler, target in zip(gathering, targets, strict=True):
            handler.setTarget(target)


def about_request(request_id: str, tenant: str, trace_id: str) -> None:
    """Lines of this task, and of those that it starts, are about that request from now on; what is empty is not told."""
    told = {"request_id": request_id, "tenant": tenant, "trace_id": trace_id}
    _about.set({name: value for name, value in told.items() if value})


def current_request_id() -> str:
    """Of the request that lines are about; empty where they are about none."""
    return _about.get().get("request_id", "")


def trace_id_of(traceparent: str) -> str:
    """Of a span that another process names (W3C Trace Context, version 00); empty where it is not recorded, or there is none."""
    _, trace_id, _, flags = traceparent.split("-") if traceparent else ("", "", "", "0")
    return trace_id if int(flags, 16) & 1 else ""


class LoggedRequests(RequestMetrics):
    """A line for each request as well. `trace_id` gives the trace of the request that is current; empty: it is not traced."""

    def __init__(self, trace_id: Callable[[], str]) -> None:
        super().__init__()
        self._trace_id = trace_id
        self._log = logging.getLogger(REQUESTS)

    def finished(self, endpoint: str, status: int, seconds: float, tenant: str) -> None:
        """See `RequestMetrics`."""
        super().finished(endpoint, status, seconds, tenant)
        told = {
            "endpoint": endpoint,
            "status": int(status),
            "seconds": round(seconds, 4),
            "tenant": tenant,
            "trace_id": self._trace_id(),
        }
        self._log.info("request", extra={FIELDS: {name: value for name, value in told.items() if value != ""}})
