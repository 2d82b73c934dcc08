"""A client sends its request whole within a time, or is not waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.api.bounds import connection
from deployments.api.bounds.connection import ConnectionBounds
from deployments.api.http.server import HttpServer
from deployments.local.ports import free_port

HOST = "127.0.0.1"
READ_S = 0.2
WHOLE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"


async def body(request: Request) -> Response:
    return PlainTextResponse(await request.body())


@asynccontextmanager
async def connected(read_s: float = READ_S) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """To a server that waits for so long."""
    port = free_port(HOST)
    server = HttpServer(Starlette(routes=[Route("/", body, methods=["POST"])]), HOST, port, ConnectionBounds(read_s, 4096))
    server.start()
    first, leaving = await asyncio.open_connection(HOST, port)
    leaving.write(WHOLE)
    await answered(first)  # now the server has started
    leaving.close()
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await server.close()


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "GRACE_S", 0.0)


async def answered(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head.partition(b"\r\n")[0] + b" " + await reader.readexactly(4)


@pytest.mark.parametrize("begun", [b"", b"POST / HTT", WHOLE[:40], WHOLE[:-1]])
async def test_who_does_not_finish_a_request_is_not_waited_for(begun: bytes) -> None:
    async with connected() as (reader, writer):
        writer.write(begun)
        assert await asyncio.wait_for(reader.read(), 20) == b""


async def test_who_sends_a_little_now_and_then_is_not_waited_for_either() -> None:
    async with connected() as (reader, writer):
        ended = asyncio.create_task(reader.read())
        for byte in WHOLE[:-1]:
            writer.write(bytes([byte]))
            done, _ = await asyncio.wait([ended], timeout=READ_S / 4)
            if done:
                break
        assert await asyncio.wait_for(ended, 20) == b""


async def test_a_request_in_pieces_is_answered_and_so_is_the_next_one() -> None:
    async with connected(read_s=30.0) as (reader, writer):
        for _ in range(2):
            for at in range(0, len(WHOLE), 20):
                writer.write(WHOLE[at : at + 20])
                await writer.drain()
                await asyncio.sleep(0)  # let it go out by itself
            assert await answered(reader) == b"HTTP/1.1 200 OK body"


async def test_a_connection_that_is_idle_between_requests_stays() -> None:
    async with connected() as (reader, writer):
        writer.write(WHOLE)
        assert await answered(reader) == b"HTTP/1.1 200 OK body"
        since = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(), 2 * READ_S)
        assert time.monotonic() - since >= 2 * READ_S
        writer.write(WHOLE)
        assert await answered(reader) == b"HTTP/1.1 200 OK body"


async def test_a_header_without_an_end_is_not_kept() -> None:
    async with connected(read_s=30.0) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nX-Endless: ")
        for _ in range(64):
            writer.write(b"x" * 1024)
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), 20)).startswith(b"HTTP/1.1 431")
