"""A client's connection: asyncio with llhttp (httptools), since what the client takes of the processors the servers do not have."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import httptools

from load_tests.front_door.clients.events import Part
from load_tests.front_door.clients.messages import CHAT


@dataclass(slots=True)
class Reply:
    """`status` 0: the connection was lost before the answer's end."""

    status: int = 0
    parts: list[Part] = field(default_factory=list)


class Connection(asyncio.Protocol):
    """One question at a time; it is opened when there is none, and again when the server has closed it."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply = Reply()
        self._ended: asyncio.Future[None] | None = None

    async def ask(self, request: bytes, reply: Reply) -> None:
        """Returns when the answer has ended. Raises OSError: nobody answers there."""
        loop = asyncio.get_running_loop()
        if self._transport is None:
            await loop.create_connection(lambda: self, *self._address)
        assert self._transport is not None
        self._reply, self._ended = reply, loop.create_future()
        self._transport.write(request)
        await self._ended

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._parser = transport, httptools.HttpResponseParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Called by the parser, as is the next."""
        self._reply.parts.append(Part(time.perf_counter(), body))

    def on_message_complete(self) -> None:
        self._reply.status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.close()
            self._transport = None
        self._end()

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


def request(host: str, port: int, body: bytes, key: str = "", path: str = CHAT) -> bytes:
    """As it goes over the wire."""
    bearer = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{bearer}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body
