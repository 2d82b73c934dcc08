"""Messages as bytes on a stream, and who is at its other end."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from msgspec.msgpack import Decoder

from model_service.errors import InvalidMessage

MOST_BYTES = 64 << 20
"""Of one message."""
_READ_BYTES = 1 << 18
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")
Message = TypeVar("Message")


def packed(message: object) -> bytes:
    """Raises InvalidMessage: longer than messages may be."""
    body = msgspec.msgpack.encode(message)
    if len(body) > MOST_BYTES:
        raise InvalidMessage(f"a message has {len(body)} bytes")
    return _LENGTH.pack(len(body)) + body


class Inbox(Generic[Message]):
    """Makes messages of the bytes that come; `longest` is the most bytes of one. Decoders are made where their types are: while msgspec
    resolves a type in one thread, it is not there for another, and the process ends (0.22)."""

    def __init__(self, decoder: Decoder[Message], longest: int = MOST_BYTES) -> None:
        self._unread = bytearray()
        self._at = 0
        self.expect(decoder, longest)

    def expect(self, decoder: Decoder[Message], longest: int = MOST_BYTES) -> None:
        """Decodes what comes from now on."""
        self._decoder = decoder
        self._longest = longest

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete by now, each decoded when it is asked for. Raises InvalidMessage."""
        self._unread += data
        while (body := self._next()) is not None:
            yield self._decoded(body)
        del self._unread[: self._at]
        self._at = 0

    def _next(self) -> bytes | None:
        if len(self._unread) - self._at < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._unread, self._at)
        if length > self._longest:
            raise InvalidMessage(f"a message has {length} bytes")
        begin = self._at + _LENGTH.size
        if begin + length > len(self._unread):
            return None
        self._at = begin + length
        return bytes(self._unread[begin : self._at])

    def _decoded(self, body: bytes) -> Message:
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise InvalidMessage(f"not a message: {error}") from None


class Connection(Generic[Message]):
    """A connected socket of one's own, whose other end has `timeout_s` to take a message in. What goes wrong with it raises OSError."""

    def __init__(self, connection: socket.socket, decoder: Decoder[Message], timeout_s: float) -> None:
        self._socket = connection
        self._inbox: Inbox[Message] = Inbox(decoder)
        connection.settimeout(timeout_s)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: msgspec.Struct) -> None:
        self._socket.sendall(packed(message))

    def read(self) -> list[Message]:
        """The messages that are complete by what has come; waits for it, for the same time."""
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the other end is gone")
        return list(self._inbox.feed(data))

    def end(self) -> None:
        """Nothing comes or goes any more; also from another thread."""
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


def is_same_user(connection: socket.socket, user: int | None = None) -> bool:
    """Whether the other end of a Unix socket is a process of this user, who could also attach a debugger; or of the `user` of that number.
    Anybody may connect to an abstract name, or take it first (unix(7), SO_PEERCRED)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1]) == (os.getuid() if user is None else user)
