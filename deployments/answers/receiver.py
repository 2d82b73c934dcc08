"""Where a process takes in the answers to its calls."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deployments.answers.connection import Connection
from deployments.answers.frames import HELLO, SAID, WINDOW, Address, Ended, Failed, Head, Hello, Piece, Read, ReplyTo, Said
from deployments.errors import AnswerLost
from model_service import replies
from model_service.wire import is_same_user

HELLO_BYTES = 1024
HELLO_S = 5.0
"""How long a stranger may stay without saying who he is."""
ANSWER_BITS = 62
"""Of an answer's number, so that whoever knows the token cannot guess which answers are expected."""
_ENDED = object()
Item = replies.Head | replies.Failure | str


class IncomingAnswer:
    """One answer, item by item: a head or a failure, then pieces; what has piled up comes as one piece, which in a stream has whole events.
    Ends when it is complete.

    Raises whatever `fail` was given, after all that had come before.
    """

    def __init__(self, reply_to: ReplyTo) -> None:
        self.reply_to = reply_to
        self.is_complete = False
        self._connection: Connection[Any] | None = None
        self._items: deque[Item | object] = deque()
        self._error: BaseException | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._unread = 0
        self._is_stream = False
        self._partial_event: list[str] = []
        """The parts of an incomplete event. Meters and checks read whole events."""

    def __aiter__(self) -> IncomingAnswer:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self._error is not None:
                raise self._error
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        first = self._items.popleft()
        if first is _ENDED:
            raise StopAsyncIteration
        if not isinstance(first, str):
            return first  # type: ignore[return-value]  # an item: the only other object ends it
        return self._joined(first)

    def said(self, message: Said, connection: Connection[Any]) -> None:
        self._connection = connection
        match message:
            case Piece(text=text, more=more):
                self._piece(text, more)
            case Head(status=status, stream=stream):
                self._is_stream = stream
                self._items.append(replies.Head(status, stream))
            case Failed(code=code, message=text, pointer=pointer, replica=replica, computing=computing):
                self._items.append(replies.Failure(code, text, pointer, replica, computing))
            case Ended():
                self.is_complete = True
                self._items.append(_ENDED)
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Nothing more comes, unless it is complete already."""
        if not self.is_complete and self._error is None:
            self._error = error
            self._wake()

    def comes_by(self, connection: Connection[Any]) -> bool:
        return self._connection is connection

    def _piece(self, text: str, more: bool) -> None:
        if more and self._is_stream:
            self._partial_event.append(text)
            self._acknowledge(len(text))  # the sender waits for room
        elif self._partial_event:
            beginning = "".join(self._partial_event)
            self._partial_event.clear()
            self._unread -= len(beginning)  # acknowledged already; the whole is acknowledged below
            self._items.append(beginning + text)
        else:
            self._items.append(text)

    def _acknowledge(self, characters: int) -> None:
        self._unread += characters
        if self._unread >= WINDOW // 2 and self._connection is not None:
            self._connection.say(Read(self.reply_to.answer, self._unread))
            self._unread = 0

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _joined(self, first: str) -> str:
        pieces = [first]
        while self._items and isinstance(self._items[0], str):
            pieces.append(str(self._items.popleft()))
        text = "".join(pieces) if len(pieces) > 1 else first
        self._acknowledge(len(text))
        return text


class AnswerReceiver:
    """Listens on a Unix socket for processes of this user on this node, and on `host` for those of other nodes, who know the token of an
    address that they were called with."""

    def __init__(self, node: str, host: str) -> None:
        self._node = node
        self._host = host
        self._expected: dict[int, IncomingAnswer] = {}
        self._connections: set[Connection[Any]] = set()
        self._servers: list[asyncio.Server] = []
        self._address: Address | None = None

    async def start(self) -> None:
        """Raises OSError: `host` is no address of this machine."""
        loop, token = asyncio.get_running_loop(), secrets.token_urlsafe(24)
        name = f"maskcast-answers-{secrets.token_hex(8)}"
        on_node = socket.socket(socket.AF_UNIX)
        on_node.bind(f"\0{name}")
        self._servers.append(await loop.create_unix_server(lambda: self._accepted(token, same_user=True), sock=on_node))
        self._servers.append(await loop.create_server(lambda: self._accepted(token), self._host, 0))
        port = self._servers[-1].sockets[0].getsockname()[1]
        self._address = Address(self._node, name, self._host, port, token)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close()

    @contextmanager
    def expect(self) -> Iterator[IncomingAnswer]:
        """An answer that is asked for meanwhile; what comes of it later is dropped."""
        assert self._address is not None, "start() comes first"
        number = secrets.randbits(ANSWER_BITS)
        answer = self._expected[number] = IncomingAnswer(ReplyTo(self._address, number))
        try:
            yield answer
        finally:
            del self._expected[number]

    def _accepted(self, token: str, same_user: bool = False) -> Connection[Any]:
        return _Caller(token, same_user, self._welcome, self._said, self._lost).connection

    def _welcome(self, connection: Connection[Any]) -> None:
        self._connections.add(connection)

    def _said(self, frame: list[Said], connection: Connection[Any]) -> None:
        for message in frame:
            if (answer := self._expected.get(message.answer)) is not None:
                answer.said(message, connection)

    def _lost(self, connection: Connection[Any]) -> None:
        self._connections.discard(connection)
        for answer in self._expected.values():
            if answer.comes_by(connection):
                answer.fail(AnswerLost("the connection to the model replica is lost"))


class _Caller:
    """Who has connected: a stranger until the token was right."""

    def __init__(
        self,
        token: str,
        same_user: bool,
        welcome: Callable[[Connection[Any]], None],
        said: Callable[[list[Said], Connection[Any]], None],
        lost: Callable[[Connection[Any]], None],
    ) -> None:
        self._token = token
        self._same_user = same_user
        self._welcome = welcome
        self._said = said
        self._lost = lost
        self._is_known = False
        self.connection: Connection[Any] = Connection(HELLO, self._received, self._ended, HELLO_BYTES)
        self._patience = asyncio.get_running_loop().call_later(HELLO_S, self._impatient)

    def _received(self, frame: Any) -> None:
        if self._is_known:
            self._said(frame, self.connection)
            return
        if not self._is_right(frame):
            self.connection.close()
            return
        self._is_known = True
        self._patience.cancel()
        self.connection.expect(SAID)
        self._welcome(self.connection)

    def _is_right(self, frame: list[Hello]) -> bool:
        transport = self.connection.transport
        if self._same_user and (transport is None or not is_same_user(transport.get_extra_info("socket"))):
            return False
        return len(frame) == 1 and hmac.compare_digest(frame[0].token.encode(), self._token.encode())

    def _impatient(self) -> None:
        self.connection.close()

    def _ended(self) -> None:
        self._patience.cancel()
        if self._is_known:
            self._lost(self.connection)
