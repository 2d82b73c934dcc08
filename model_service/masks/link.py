"""The engine's connection to the broadcaster: only `poll` waits for anything."""

from __future__ import annotations

import select
import socket

import msgspec

from model_service.errors import InvalidMessage
from model_service.masks.messages import FROM_BROADCASTER, FromBroadcaster, Welcome
from model_service.masks.ring.ring import RingReader
from model_service.wire import Inbox, is_same_user, packed

MOST_UNSENT = 16 << 20
"""Bytes that may wait for a broadcaster to take them in: requests with long answers are told to one that has just begun."""
_READ_BYTES = 1 << 16


class Link:
    """What goes wrong with it raises OSError or MaskcastError, and ends it. `ring` None: the broadcaster has not said welcome.

    Raises:
        OSError: nobody listens.
        InvalidMessage: it is another user who listens.
    """

    def __init__(self, name: str, hello: msgspec.Struct) -> None:
        self._inbox = Inbox(FROM_BROADCASTER)
        self._unsent = bytearray()
        self.ring: RingReader | None = None
        self._poll = select.poll()
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.setblocking(False)
            self._socket.connect(f"\0{name}")
            if not is_same_user(self._socket):
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

    def poll(self, timeout_s: float) -> bool:
        """Whether there is something to read, or room for what is unsent, within the time."""
        self._poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        return bool(self._poll.poll(timeout_s * 1000))

    def read(self) -> list[FromBroadcaster]:
        """What it has said since. A `Welcome` has been acted on: from then on there is a ring."""
        self._flush()
        messages = list(self._inbox.feed(self._received()))
        for message in messages:
            if isinstance(message, Welcome):
                if self.ring is not None:
                    raise InvalidMessage("the mask broadcaster says welcome again")
                self.ring = RingReader(message.ring)
        return messages

    def close(self) -> None:
        self._socket.close()
        if self.ring is not None:
            self.ring.close()
            self.ring = None

    def _received(self) -> bytes:
        received = b""
        try:
            while len(received) % _READ_BYTES == 0:
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise ConnectionError("the mask broadcaster is gone")
                received += data
        except BlockingIOError:
            pass  # that was all
        return received

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass  # it goes on with the next message
