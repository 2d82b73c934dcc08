from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from deployments.client import AsyncStructuredClient, StructuredClient
from deployments.client.transport import MAX_RETRIES, parse_events
from deployments.errors import ApiError

ANSWER = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
EVENT = {"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}


def test_events_are_read_and_comments_and_the_mark_at_the_end_are_not() -> None:
    lines = [": keep-alive", 'data: {"a": 1}', "", 'data: {"b": 2}', "data: [DONE]"]
    assert list(parse_events(lines)) == [{"a": 1}, {"b": 2}]


@contextmanager
def refusing(times: int, status: int = 503, **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """A server that refuses so many requests before it answers; its address, and the bodies that it has got."""
    bodies = list[Any]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            refused = len(bodies) <= times
            answer = {"error": {"message": "busy", "code": "model_busy"}} if refused else ANSWER
            data = json.dumps(answer).encode()
            if not refused and bodies[-1].get("stream"):
                data = f"data: {json.dumps(EVENT)}\n\ndata: [DONE]\n\n".encode()
            self.send_response(status if refused else 200)
            for name, value in {**(headers if refused else {}), "content-length": str(len(data))}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


async def asked(url: str, how: str) -> str:
    async with AsyncStructuredClient(url) as client:
        match how:
            case "generate":
                return StructuredClient.over_http(url).generate("Say.").text
            case "stream":
                return "".join(StructuredClient.over_http(url).stream("Say."))
            case "async generate":
                return (await client.generate("Say.")).text
            case _:
                return "".join([piece async for piece in client.stream("Say.")])


WAYS = ["generate", "stream", "async generate", "async stream"]


@pytest.mark.parametrize("how", WAYS)
async def test_a_request_that_was_not_begun_is_sent_again(how: str) -> None:
    with refusing(MAX_RETRIES, Retry_After="0") as (url, bodies):
        assert await asked(url, how) == "yes"
        assert bodies == [bodies[0]] * (1 + MAX_RETRIES)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("status", "headers"), [(503, {}), (500, {"Retry_After": "0"}), (429, {"Retry_After": "3600"})])
async def test_what_may_have_been_begun_or_is_refused_for_long_is_not(how: str, status: int, headers: dict[str, str]) -> None:
    with refusing(MAX_RETRIES, status, **headers) as (url, bodies):
        with pytest.raises(ApiError, match="busy") as raised:
            await asked(url, how)
        assert (raised.value.status, raised.value.code, len(bodies)) == (status, "model_busy", 1)
        assert raised.value.retry_after_s == (int(headers["Retry_After"]) if headers else None)


@pytest.mark.parametrize("how", WAYS)
async def test_it_is_not_sent_for_ever(how: str) -> None:
    with refusing(MAX_RETRIES + 1, Retry_After="0") as (url, bodies):
        with pytest.raises(ApiError):
            await asked(url, how)
        assert len(bodies) == 1 + MAX_RETRIES
