"""Carries payloads from the replica to its engine core, which is another process of the same user on the same node.

The socket has an abstract name, so that nothing is left in the file system however a process ends. The peer's user id is
checked: whoever may connect could also attach a debugger. A request is a key and a newline; the answer is a one-byte
flag, a backend name, a newline and the payload, up to the end of the stream.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model_service.errors import ChannelError

FOUND, MISSING = b"+", b"-"


@dataclass(frozen=True, slots=True)
class Payload:
    """A compiled grammar as its backend serializes it."""

    backend: str
    data: bytes


class ArtifactServer:
    """Offers payloads for as long as a request needs them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._payloads: dict[str, Callable[[], Payload]] = {}
        self._users: Counter[str] = Counter()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._answer, path=f"\0{self.name}")

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @contextmanager
    def offered(self, key: str, payload: Callable[[], Payload]) -> Iterator[None]:
        """`payload()` can be fetched under `key` until the block ends; blocks with one key share it."""
        self._payloads.setdefault(key, payload)
        self._users[key] += 1
        try:
            yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._payloads[key]

    def _frame(self, key: str) -> bytes:
        if (make := self._payloads.get(key)) is None:
            return MISSING
        payload = make()
        return FOUND + payload.backend.encode() + b"\n" + payload.data

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _peer_user(writer) == os.getuid():
                key = (await reader.readuntil(b"\n"))[:-1].decode("ascii", "replace")
                writer.write(self._frame(key))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the engine core went away in the middle of a fetch; there is nobody to tell
        finally:
            writer.close()


def fetch(name: str, key: str, timeout_s: float = 10.0) -> Payload:
    """The payload that the server offers under `key`; blocks, for the engine core's own threads.

    Raises:
        ChannelError: nothing is offered under the key, or the replica did not answer in time.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(f"\0{name}")
            connection.sendall(key.encode("ascii") + b"\n")
            with connection.makefile("rb") as stream:
                answer = stream.read()
    except OSError as error:
        raise ChannelError(f"the replica did not answer: {error}") from error
    if not answer.startswith(FOUND):
        raise ChannelError(f"no artifact is offered for key {key[:16]}…")
    backend, _, data = answer[1:].partition(b"\n")
    return Payload(backend.decode(), data)


def _peer_user(writer: asyncio.StreamWriter) -> int:
    credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
