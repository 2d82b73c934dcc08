"""The HTTP server of an ingress, on its own event loop (uvicorn 0.54).

Ray Serve's proxy would take each piece of each answer through two more processes; see `docs/decisions.md`.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.api.bounds.connection import BoundedConnection, ConnectionBounds

BACKLOG = 2048
KEEP_ALIVE_S = 75
"""Longer than load balancers and clients keep a connection that is idle, so that it is never they who find it closed."""


class HttpServer:
    """Several servers of one user may listen at one address: the kernel spreads the connections, and an ingress takes over from the one
    before it without a gap. Clients keep to the `bounds`. Answers that are under way when it closes have `drain_s`."""

    def __init__(
        self,
        application: ASGIApp,
        host: str,
        port: int,
        bounds: ConnectionBounds | None = None,
        drain_s: float = 20.0,
        leave_s: float = 0.0,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Raises OSError: the address is not this machine's, or taken by another program."""
        self.is_leaving = False
        self._application = application
        self._leave_s = leave_s
        self._pause = pause
        self._socket = _listening(host, port)
        self._server = _Server(
            uvicorn.Config(
                self._answer,
                http=cast(type[asyncio.Protocol], partial(BoundedConnection, bounds=bounds or ConnectionBounds())),
                interface="asgi3",
                lifespan="off",
                ws="none",
                access_log=False,
                server_header=False,
                log_config=None,  # its own would close the handlers of everybody else, see `telemetry.logs.handlers_kept`
                log_level="warning",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=math.ceil(drain_s),
            )
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def close(self) -> None:
        """For `leave_s` it is leaving, and answers all the same, so that load balancers take note before the port is closed.
        Then no new connections; returns when what is under way has been answered, or its time is over."""
        self.is_leaving = True
        if self._leave_s:
            await self._pause(self._leave_s)
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._socket.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, _last(send) if self.is_leaving else send)


def _last(send: Send) -> Send:
    """Tells the client that its connection ends with this answer."""

    async def closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return closing


class _Server(uvicorn.Server):
    # The process is Ray's, and so are its signals.
    capture_signals = nullcontext  # type: ignore[assignment]


def _listening(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    server = socket.socket(family, kind, protocol)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(address)
        server.listen(BACKLOG)
    except OSError:
        server.close()
        raise
    return server
