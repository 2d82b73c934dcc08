from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO

import pytest
from rich.console import Console

from deployments.commands.status import read_status, show_status, watch_cluster
from deployments.errors import StatusError

DEGRADED = {"status": "degraded", "degraded": ["redis"], "replicas": {"ModelReplica": 1}, "wanted": {"ModelReplica": 2}, "redis": "down"}


@contextmanager
def answering(code: int, body: bytes) -> Iterator[str]:
    """A server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("code", "ready"), [(200, True), (503, False)])
def test_the_http_status_tells_whether_requests_are_answered(code: int, ready: bool) -> None:
    with answering(code, json.dumps(DEGRADED).encode()) as url:
        readiness, answers = read_status(url)
    assert answers is ready
    assert readiness.degraded == ["redis"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"hello": 1}'])
def test_another_program_is_recognized(body: bytes) -> None:
    with answering(200, body) as url, pytest.raises(StatusError, match="is not Maskcast"):
        read_status(url)


def test_the_table_shows_deployments_and_what_is_missing() -> None:
    with answering(200, json.dumps(DEGRADED).encode()) as url:
        readiness, _ = read_status(url)
    out = StringIO()
    show_status(readiness, Console(file=out, width=80))
    assert "ModelReplica" in out.getvalue()
    assert "redis: down" in out.getvalue()
    assert "missing: redis" in out.getvalue()


CLUSTER = {
    **DEGRADED,
    "engines": [{"replica": "r1", "running": 3, "grammars": 12, "steps": 5000, "restarts": 0}],
    "counters": {"requests": 7, "forced_tokens": 90},
    "requests_by_tenant": {"billing": 7},
}


def test_watching_shows_engines_counters_and_tenants() -> None:
    out, waited = StringIO(), list[float]()
    with answering(200, json.dumps(CLUSTER).encode()) as url:
        watch_cluster(url, None, Console(file=out, width=80), waited.append, range(2))
    assert len(waited) == 2
    for shown in ("r1", "5,000", "forced tokens", "billing", "maskcast: degraded"):
        assert shown in out.getvalue()


def test_when_the_service_ends_meanwhile_that_is_told_and_the_last_figures_stay() -> None:
    out = StringIO()
    with ExitStack() as service:
        url = service.enter_context(answering(200, json.dumps(CLUSTER).encode()))
        watch_cluster(url, None, Console(file=out, width=120), lambda _: service.close(), range(1))
    last = out.getvalue().rpartition("maskcast: degraded")[2]
    assert "r1" in last
    assert "nothing answers at" in last


def test_a_key_without_the_scope_is_refused_with_its_error() -> None:
    body = {"error": {"message": "This key may not read metrics.", "code": "insufficient_scope"}}
    with answering(403, json.dumps(body).encode()) as url, pytest.raises(StatusError, match=r"403: .*may not read metrics"):
        watch_cluster(url, "key", Console(file=StringIO()), lambda _: None, range(1))
