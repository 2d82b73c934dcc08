"""The engine's connection to the broadcaster: nothing here waits for anything."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import msgspec

from model_service.errors import InvalidMessage
from model_service.masks.messages import FromBroadcaster, Welcome
from model_service.masks.ring import RingReader
from model_service.masks.shared_memory import MemoryAddress
from model_service.masks.wire import Inbox, is_ours, packed

MOST_UNSENT = 16 << 20
"""Bytes that may wait for a broadcaster to take them in: requests with long answers are told to one that has just begun."""
_READ_BYTES = 1 << 16


class Link:
    """What goes wrong with it raises OSError or MaskError, and ends it.

    Raises:
        OSError: nobody listens.
        InvalidMessage: it is another user who listens.
    """

    def __init__(self, name: str, hello: msgspec.Struct, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._inbox: Inbox[FromBroadcaster] = Inbox(FromBroadcaster)
        self._unsent = bytearray()
        self.ring: RingReader | None = None
        self.address: MemoryAddress | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.setblocking(False)
            self._socket.connect(f"\0{name}")
            if not is_ours(self._socket):
                raise InvalidMessage("the mask broadcaster's name is another user's")
            self.send(hello)
        except BaseException:
            self._socket.close()
            raise

    def send(self, message: msgspec.Struct) -> None:
        self._unsent += packed(message)
        self._flush()
        if len(self._unsent) > MOST_UNSENT:
            raise InvalidMessage("the mask broadcaster does not listen")

    def read(self) -> list[FromBroadcaster]:
        """What it has said since. A `Welcome` has been acted on: from then on there is a ring."""
        self._flush()
        messages: list[FromBroadcaster] = []
        while (data := self._received()) is not None:
            messages += self._inbox.feed(data)
        for message in messages:
            if isinstance(message, Welcome):
                self._attach(message.ring)
        return messages

    def close(self) -> None:
        self._socket.close()
        if self.ring is not None:
            self.ring.close()
            self.ring = None

    def _attach(self, address: MemoryAddress) -> None:
        if self.ring is not None:
            raise InvalidMessage("the mask broadcaster says welcome again")
        self.ring, self.address = RingReader(address, self._clock), address

    def _received(self) -> bytes | None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionError("the mask broadcaster is gone")
        return data

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass  # it goes on with the next message
