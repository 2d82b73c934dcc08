"""Carries payloads from the replica to its engine core, which is another process of the same user on the same node.

The socket has an abstract name, so that nothing is left in the file system however a process ends. Both ends check that the other is
this user's: artifacts are not signed here, and the name of a replica that has died is anybody's. A request is a key and a newline; the
answer is a one-byte flag, a backend name, a newline and the payload, up to the end of the stream.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model_service.errors import ChannelError
from model_service.wire import is_same_user

FOUND, MISSING = b"+", b"-"


@dataclass(frozen=True, slots=True)
class Payload:
    """A compiled grammar as its backend serializes it."""

    backend: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PayloadView:
    """The same, which need not be copied out of the artifact that holds it."""

    backend: str
    data: bytes | memoryview


class ArtifactServer:
    """Offers payloads to processes of `user`, None: of this one, for as long as a request needs them."""

    def __init__(self, name: str, user: int | None = None) -> None:
        self.name = name
        self._user = user
        self._payloads: dict[str, Callable[[], Payload | PayloadView]] = {}
        self._users: Counter[str] = Counter()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._answer, path=f"\0{self.name}")

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @contextmanager
    def offered(self, key: str, payload: Callable[[], Payload | PayloadView]) -> Iterator[None]:
        """`payload()` can be fetched under `key` until the block ends; blocks with one key share it."""
        self._payloads.setdefault(key, payload)
        self._users[key] += 1
        try:
            yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._payloads[key]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if is_same_user(writer.get_extra_info("socket"), self._user):
                key = (await reader.readuntil(b"\n"))[:-1].decode("ascii", "replace")
                self._send(key, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the engine core went away in the middle of a fetch; there is nobody to tell
        finally:
            writer.close()

    def _send(self, key: str, writer: asyncio.StreamWriter) -> None:
        if (make := self._payloads.get(key)) is None:
            writer.write(MISSING)
            return
        payload = make()
        writer.write(FOUND + payload.backend.encode() + b"\n")
        # Apart, since joining the two would copy what may be megabytes.
        writer.write(payload.data)


def fetch(name: str, key: str, timeout_s: float = 10.0, user: int | None = None) -> Payload:
    """The payload that a server of `user`, None: of this process's, offers under `key`; blocks, for the engine core's own threads.

    Raises:
        ChannelError: nothing is offered under the key, or the replica did not answer in time.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(f"\0{name}")
            if not is_same_user(connection, user):
                raise ChannelError("the replica's name is another user's")
            connection.sendall(key.encode("ascii") + b"\n")
            with connection.makefile("rb") as stream:
                head, data = stream.readline(), stream.read()
    except OSError as error:
        raise ChannelError(f"the replica did not answer: {error}") from error
    if not head.startswith(FOUND):
        raise ChannelError(f"no artifact is offered for key {key[:16]}…")
    return Payload(head.removeprefix(FOUND).rstrip(b"\n").decode(), data)
