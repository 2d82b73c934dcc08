"""Web pages and endless headers stay outside."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.api.bounds.request_filter import RequestFilter, RequestRules
from deployments.config import parse_settings

JSON = {"Content-Type": "application/json"}


async def inside(_: Request) -> Response:
    return PlainTextResponse("inside")


def door(**http: object) -> httpx.AsyncClient:
    """What answers behind the door with these settings."""
    application = RequestFilter(
        Starlette(routes=[Route("/", inside, methods=["GET", "POST"])]), RequestRules.of(parse_settings({"http": http}))
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://localhost:8000")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json", None])
async def test_what_a_web_page_may_send_without_asking_is_not_read(kind: str | None) -> None:
    async with door() as client:
        answer = await client.post("/", content=b"{}", headers={} if kind is None else {"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON ; charset=utf-8"])
async def test_json_is_read(kind: str) -> None:
    async with door() as client:
        assert (await client.post("/", content=b"{}", headers={"Content-Type": kind})).text == "inside"


async def test_two_types_are_none() -> None:
    async with door() as client:
        headers = [("Content-Type", "text/plain"), ("Content-Type", "application/json")]
        assert (await client.post("/", content=b"{}", headers=headers)).status_code == 415


async def test_nobody_tells_a_web_page_that_it_may_ask() -> None:
    asking = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    async with door() as client:
        answers = [await client.options("/", headers=asking), await client.post("/", content=b"{}", headers={**JSON, **asking})]
    assert answers[0].status_code == 405
    assert not [name for answer in answers for name in answer.headers if name.startswith("access-control")]


LOCAL = {"host": "127.0.0.1"}
ANYWHERE = {"host": "0.0.0.0"}  # not listened at
NAMED = {"host": "0.0.0.0", "allowed_hosts": ["Models.example"]}


@pytest.mark.parametrize(
    ("http", "host", "is_answered"),
    [
        (LOCAL, "localhost:8000", True),
        (LOCAL, "127.0.0.1:8000", True),
        (LOCAL, "[::1]:8000", True),
        (LOCAL, "a.localhost", True),
        (LOCAL, "evil.example", False),
        (LOCAL, "evil.example:8000", False),
        (LOCAL, "127.0.0.1.evil.example", False),
        (LOCAL, "localhost.evil.example", False),
        (LOCAL, "[evil.example]", False),
        ({"host": "localhost"}, "evil.example", False),
        ({**LOCAL, "allowed_hosts": ["models.example"]}, "models.example", True),
        (ANYWHERE, "whatever.example", True),
        (NAMED, "models.example:443", True),
        (NAMED, "MODELS.example.", True),
        (NAMED, "10.0.0.7", True),
        (NAMED, "evil.example", False),
    ],
)
async def test_names_are_answered_to_as_the_settings_say(http: dict[str, object], host: str, is_answered: bool) -> None:
    async with door(**http) as client:
        answer = await client.get("/", headers={"Host": host})
    assert (answer.text == "inside") is is_answered
    if not is_answered:
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "host_not_allowed")


async def test_headers_have_a_bound() -> None:
    async with door() as client:
        assert (await client.get("/", headers={"X-Large": "x" * 30_000})).text == "inside"
        answer = await client.get("/", headers={f"X-{number}": "x" * 1000 for number in range(40)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (431, "headers_too_large")
