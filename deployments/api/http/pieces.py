"""Bodies that are sent in pieces, so that a client that does not read holds what it has asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE = 64 << 10
"""Bytes: what a connection holds before its writer has to wait (asyncio's high-water mark)."""


class PiecewiseResponse(Response):
    """Sends each piece when the client has taken most of the one before. `ended` is called once: when the last piece is sent, when the
    client has left, or when it takes no piece within `timeout_s`. Until then the request keeps its place and its memory."""

    def __init__(
        self,
        content: bytes | str,
        status: int,
        headers: Mapping[str, str],
        media_type: str,
        ended: Callable[[], Awaitable[None]],
        timeout_s: float,
    ) -> None:
        super().__init__(content, status, dict(headers), media_type)
        self._ended = ended
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # The server closes the connection of an answer that is not complete.
            with suppress(TimeoutError):
                await self._send_all(send)
        finally:
            await self._ended()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, max(1, len(self.body)), PIECE):
            more = start + PIECE < len(self.body)
            async with asyncio.timeout(self._timeout_s):
                await send({"type": "http.response.body", "body": bytes(self.body[start : start + PIECE]), "more_body": more})
