from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO

import pytest
from rich.console import Console

from deployments.commands.status import read_status, show_status
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
