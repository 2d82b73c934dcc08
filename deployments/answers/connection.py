"""One end of a connection on the event loop: whole frames come in, and what is said in one turn of the loop goes out as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from msgspec.msgpack import Decoder

from model_service.errors import InvalidMessage
from model_service.wire import MOST_BYTES, Inbox, packed

Received = TypeVar("Received")
AT_ONCE = 1 << 20
"""Characters that a frame grows to before it is sent without waiting for the turn to end; those of 256 short pieces are a tenth of it."""


class Connection(asyncio.Protocol, Generic[Received]):
    """`receive` is given each frame; `lost` is called once, when nothing comes or goes any more. Bytes that are no frames end it."""

    def __init__(
        self, decoder: Decoder[Received], receive: Callable[[Received], None], lost: Callable[[], None], longest: int = MOST_BYTES
    ) -> None:
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._unsent: list[object] = []
        self._characters = 0
        self._inbox: Inbox[Received] = Inbox(decoder, longest)

    def expect(self, decoder: Decoder[Received]) -> None:
        """Decodes the frames from here on."""
        self._inbox.expect(decoder)

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._inbox.feed(data):
                self._receive(frame)
        except InvalidMessage:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._unsent.clear()
        self._lost()

    def say(self, message: object, characters: int = 0) -> None:
        """Goes out when this turn of the loop ends, together with all that is said in it. After the connection is lost: nowhere."""
        if self._transport is None:
            return
        self._unsent.append(message)
        self._characters += characters
        if self._characters > AT_ONCE:
            self._flush()
        elif len(self._unsent) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _flush(self) -> None:
        if self._unsent and self._transport is not None:
            frame, self._unsent, self._characters = self._unsent, [], 0
            self._transport.write(packed(frame))
