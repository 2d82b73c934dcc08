"""A client sends its request whole within a time, or is not waited for."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from deployments.api.bounds import connection
from deployments.api.bounds.connection import MAX_URL_BYTES, MOST_HEADERS, BoundedConnection, ConnectionBounds
from deployments.api.http.leaving import ClientLeft, while_connected
from deployments.api.http.server import HttpServer
from deployments.local.ports import free_port

HOST = "127.0.0.1"
READ_S = 0.2
WHOLE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"


async def body(request: Request) -> Response:
    return PlainTextResponse(await request.body())


@asynccontextmanager
async def connected(read_s: float = READ_S, max_age_s: float = 60.0) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """To a server that waits for so long, and keeps connections for so long."""
    port = free_port(HOST)
    bounds = ConnectionBounds(read_s, max_header_bytes=4096, max_age_s=max_age_s)
    server = HttpServer(Starlette(routes=[Route("/", body, methods=["POST"])]), HOST, port, bounds)
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


async def test_a_connection_that_has_grown_old_ends_with_its_answer_and_says_so() -> None:
    async with connected(max_age_s=0.0) as (reader, writer):
        writer.write(WHOLE)
        assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await reader.read() == b"body"


CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [(b"POST / HTTP/1.1\r\nX-Endless: ", b"x" * 1024), (CHUNKED + b"4\r\nbody\r\n0\r\n", b"a:\r\n" * 256)],
    ids=["header", "trailers"],
)
async def test_what_has_no_end_is_not_kept(begin: bytes, more: bytes) -> None:
    async with connected(read_s=30.0) as (reader, writer):
        writer.write(begin)
        for _ in range(64):
            writer.write(more)
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), 20)).startswith(b"HTTP/1.1 431")


async def test_many_headers_end_the_connection() -> None:
    """Each takes more memory than it has bytes."""
    async with connected() as (reader, writer):
        begin, end = WHOLE.split(b"\r\n", 1)
        writer.write(begin + b"\r\n" + b"a:b\r\n" * (MOST_HEADERS + 1) + end)
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400")


async def test_a_connection_that_idles_keeps_nothing_of_its_last_request() -> None:
    async with connected(read_s=20) as (reader, writer):
        for _ in range(2):
            writer.write(WHOLE)
            assert await answered(reader) == b"HTTP/1.1 200 OK body"
        (idle,) = (one for one in gc.get_objects() if type(one) is BoundedConnection and not one.transport.is_closing())
        assert (idle.headers, bytes(idle.cycle.body), idle.cycle.scope["headers"]) == ([], b"", [])


async def test_a_body_may_come_in_many_chunks_and_have_trailers() -> None:
    async with connected(read_s=30.0) as (reader, writer):
        writer.write(CHUNKED)
        for _ in range(2000):
            writer.write(b"8\r\nabcdefgh\r\n")
        writer.write(b"0\r\nx-sum: 1\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert head.startswith(b"HTTP/1.1 200")
        assert b"content-length: 16000" in head.lower()


async def test_no_request_waits_behind_another() -> None:
    """Thousands would each be held, and hide that their client has left."""
    async with connected(read_s=30.0) as (reader, writer):
        writer.write(WHOLE * 1000)
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("stray", [b"\n", b"\r\n", b"\r\n\r\n"])
async def test_line_feeds_behind_an_answer_keep_no_connection(stray: bytes) -> None:
    async with connected() as (reader, writer):
        writer.write(WHOLE)
        assert await answered(reader) == b"HTTP/1.1 200 OK body"
        writer.write(stray)
        assert await asyncio.wait_for(reader.read(), 20) == b""


async def test_line_feeds_ahead_of_a_request_are_passed_over() -> None:
    async with connected(read_s=30.0) as (reader, writer):
        for _ in range(3):
            writer.write(WHOLE)
            assert await answered(reader) == b"HTTP/1.1 200 OK body"
            writer.write(b"\r\n")


ENDLESS = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n"
CHUNK = b"x" * 60_000
CHUNKS = 256


@asynccontextmanager
async def streaming(write_s: float, chunks: int, max_age_s: float = 60.0) -> AsyncIterator[tuple[int, asyncio.Event, set[Any]]]:
    """The port of a server that sends so much at once, what is set when the client has left, or has been left, and the open connections."""
    left = asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        try:
            async with while_connected(request):
                await send({"type": "http.response.start", "status": 200, "headers": []})
                for _ in range(chunks):
                    await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
        except ClientLeft:
            left.set()
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    port = free_port(HOST)
    server = HttpServer(stream, HOST, port, ConnectionBounds(write_timeout_s=write_s, max_age_s=max_age_s))
    server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # so that the machine takes little in its stead
    server.start()
    yield port, left, server._server.server_state.connections
    await server.close()


async def small_reader(port: int) -> socket.socket:
    """A client whose machine takes little that it does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, (HOST, port))
    await asyncio.get_running_loop().sock_sendall(client, ENDLESS)
    return client


async def test_who_does_not_read_his_answer_is_left() -> None:
    async with streaming(0.2, 1 << 20) as (port, left, _):
        with await small_reader(port):
            await asyncio.wait_for(left.wait(), 20)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)  # the poll's interval
    raise AssertionError("in vain")


async def test_who_does_not_take_the_end_of_his_answer_keeps_no_connection() -> None:
    """Less than what pauses the writer waits in a transport that is closed already."""
    async with streaming(0.2, 1, max_age_s=0.0) as (port, left, connections):
        with await small_reader(port):
            await until(lambda: any(one.transport.is_closing() for one in connections))
            await until(lambda: not connections)
        assert not left.is_set()


async def test_a_long_url_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """And writes no line into the log."""
    async with connected() as (reader, writer):
        writer.write(WHOLE.replace(b"POST /", b"POST /?" + b"a&" * (MAX_URL_BYTES // 2)))
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400")
    assert not caplog.records


async def test_who_reads_his_answer_gets_all_of_it() -> None:
    async with streaming(20.0, CHUNKS) as (port, left, _):
        with await small_reader(port) as client:
            received = 0
            while received < CHUNKS * len(CHUNK):
                received += len(await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1 << 20), 20))
        assert not left.is_set()


async def test_hundreds_of_half_open_requests_harm_nobody_and_end() -> None:
    async with connected(read_s=1.0) as (reader, writer):
        writer.write(WHOLE)
        assert await answered(reader) == b"HTTP/1.1 200 OK body"
        host, port = writer.get_extra_info("peername")[:2]
        half_open = await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(300)))
        for _, slow in half_open:
            slow.write(WHOLE[:-1])
        writer.write(WHOLE)
        assert await asyncio.wait_for(answered(reader), 60) == b"HTTP/1.1 200 OK body"
        assert await asyncio.wait_for(asyncio.gather(*(one.read() for one, _ in half_open)), 60) == [b""] * 300
        for _, slow in half_open:
            slow.close()


async def test_a_connection_too_many_is_told_so_and_closed() -> None:
    port = free_port(HOST)
    server = HttpServer(Starlette(routes=[Route("/", body, methods=["POST"])]), HOST, port, ConnectionBounds(max_connections=2))
    server.start()
    opened = [await asyncio.open_connection(HOST, port) for _ in range(2)]
    for reader, writer in opened:
        writer.write(WHOLE)
        assert (await answered(reader)).endswith(b"200 OK body")
    reader, writer = await asyncio.open_connection(HOST, port)
    assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
    for _, each in (*opened, (reader, writer)):
        each.close()
        await each.wait_closed()
    await server.close()
