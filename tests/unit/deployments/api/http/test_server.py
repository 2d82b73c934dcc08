"""The HTTP server on a loop that is somebody else's."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.api.http.leaving import ClientLeft, while_connected
from deployments.api.http.server import HttpServer
from deployments.local.ports import free_port

HOST = "127.0.0.1"


def server_of(name: str, port: int) -> HttpServer:
    async def tell(_: Request) -> Response:
        return PlainTextResponse(name)

    return HttpServer(Starlette(routes=[Route("/", tell)]), HOST, port)


async def told(port: int) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://{HOST}:{port}/")).text


async def test_one_server_takes_over_from_another_at_the_same_address() -> None:
    port = free_port(HOST)
    first = server_of("first", port)
    first.start()
    assert await told(port) == "first"
    second = server_of("second", port)
    second.start()
    await first.close()
    assert [await told(port) for _ in range(8)] == ["second"] * 8
    await second.close()
    with pytest.raises(httpx.ConnectError):
        await told(port)


async def test_what_is_under_way_is_answered_before_the_server_ends() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> Response:
        begun.set()
        await may_end.wait()
        return PlainTextResponse("answered")

    port = free_port(HOST)
    server = HttpServer(Starlette(routes=[Route("/", slow)]), HOST, port)
    server.start()
    asked = asyncio.create_task(told(port))
    await begun.wait()
    closing = asyncio.create_task(server.close())
    may_end.set()
    assert await asked == "answered"
    await closing


async def test_a_server_that_leaves_says_so_before_it_shuts_its_door() -> None:
    asked_for: list[float] = []
    may_go_on = asyncio.Event()

    async def pause(seconds: float) -> None:
        asked_for.append(seconds)
        await may_go_on.wait()

    async def alive(_: Request) -> Response:
        return PlainTextResponse("leaving" if server.is_leaving else "here")

    port = free_port(HOST)
    server = HttpServer(Starlette(routes=[Route("/", alive)]), HOST, port, leave_s=7.0, pause=pause)
    server.start()
    async with httpx.AsyncClient(trust_env=False) as client:
        before = await client.get(f"http://{HOST}:{port}/")
        closing = asyncio.create_task(server.close())
        after = [await client.get(f"http://{HOST}:{port}/") for _ in range(2)]
        assert (before.text, "connection" in before.headers) == ("here", False)
        assert [(each.text, each.headers["connection"]) for each in after] == [("leaving", "close")] * 2
        assert asked_for == [7.0]
        may_go_on.set()
        await closing
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{HOST}:{port}/")


async def test_an_address_of_another_machine_is_no_address_to_listen_at() -> None:
    with pytest.raises(OSError, match="annot assign"):
        HttpServer(Starlette(), "203.0.113.1", 8000)


async def test_who_leaves_while_waiting_is_heard() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        await request.body()
        try:
            async with while_connected(request):
                begun.set()
                await asyncio.Event().wait()
        except ClientLeft:
            left.set()
        return Response(status_code=499)

    port = free_port(HOST)
    server = HttpServer(Starlette(routes=[Route("/", wait)]), HOST, port)
    server.start()
    _, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    await begun.wait()
    writer.close()
    await asyncio.wait_for(left.wait(), 10)
    await server.close()
