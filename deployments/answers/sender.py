"""Where a process sends the answers to the calls that it gets: one connection to each caller."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from deployments.answers.connection import Connection
from deployments.answers.frames import READ, WINDOW, Address, Ended, Failed, Head, Hello, Piece, Read, ReplyTo
from deployments.errors import AnswerLost
from model_service import replies
from model_service.wire import is_same_user

CONNECT_S = 5.0
Item = replies.Head | replies.Failure | str


class AnswerSender:
    """`node` is where this process runs: callers on it are reached by a Unix socket."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._callers: dict[Address, asyncio.Task[_Caller]] = {}

    async def send(self, reply_to: ReplyTo, items: AsyncGenerator[Item, None]) -> None:
        """All items, each as soon as there is room for it; `items` is closed in any case.

        Raises:
            AnswerLost: nobody hears them any more; raised at once, also while there is nothing to say.
        """
        async with aclosing(items):
            caller = await self._caller(reply_to.address)
            with caller.answering(reply_to.answer) as answer:
                async for item in items:
                    await answer.say(item)
                answer.end()

    async def close(self) -> None:
        for task in self._callers.values():
            if not task.cancel() and not _is_over(task):
                task.result().close()

    async def _caller(self, address: Address) -> _Caller:
        task = self._callers.get(address)
        if task is None or _is_over(task):
            # The addresses of callers that have ended never come back.
            self._callers = {other: kept for other, kept in self._callers.items() if not _is_over(kept)}
            task = self._callers[address] = asyncio.create_task(self._connected(address))
        try:
            return await asyncio.shield(task)
        except (OSError, TimeoutError) as error:
            raise AnswerLost(f"cannot connect to the caller: {error}") from error

    async def _connected(self, address: Address) -> _Caller:
        caller, loop = _Caller(), asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S):
            if address.node == self._node:
                await loop.create_unix_connection(lambda: caller.connection, sock=await _on_node(address.socket))
            else:
                await loop.create_connection(lambda: caller.connection, address.host, address.port)
        caller.connection.say(Hello(address.token))
        return caller


async def _on_node(name: str) -> socket.socket:
    """A socket that is connected to an abstract name, which uvloop does not take for a path. Raises OSError, also where a process of
    another user listens there: whoever is first has such a name, and would be told the caller's token."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, f"\0{name}")
        if not is_same_user(connection):
            raise PermissionError("another user listens at the caller's socket")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_over(task: asyncio.Task[_Caller]) -> bool:
    """Whether it is no connection, and never becomes one."""
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().is_lost)


class _Caller:
    """A connection, and the answers that go by it."""

    def __init__(self) -> None:
        self._answers: dict[int, _OutgoingAnswer] = {}
        self.is_lost = False
        self.connection: Connection[list[Read]] = Connection(READ, self._read, self._lost)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def answering(self, number: int) -> Iterator[_OutgoingAnswer]:
        """Raises AnswerLost inside, also into whatever is awaited there, when the connection is lost."""
        if self.is_lost:
            raise AnswerLost("the caller is gone")
        task = asyncio.current_task()
        assert task is not None
        answer = self._answers[number] = _OutgoingAnswer(number, self.connection, task)
        try:
            yield answer
        except asyncio.CancelledError:
            if answer.is_lost and task.uncancel() == 0:
                raise AnswerLost("the caller is gone") from None
            raise  # somebody else has cancelled it
        finally:
            del self._answers[number]

    def _read(self, frame: list[Read]) -> None:
        for message in frame:
            if (answer := self._answers.get(message.answer)) is not None:
                answer.read(message.characters)

    def _lost(self) -> None:
        self.is_lost = True
        for answer in self._answers.values():
            answer.lose()


class _OutgoingAnswer:
    def __init__(self, number: int, connection: Connection[list[Read]], task: asyncio.Task[Any]) -> None:
        self.is_lost = False
        self._task = task
        self._number = number
        self._connection = connection
        self._on_the_way = 0
        self._room: asyncio.Future[None] | None = None

    async def say(self, item: Item) -> None:
        match item:
            case str():
                for start in range(0, len(item), WINDOW):
                    await self._piece(item[start : start + WINDOW], more=start + WINDOW < len(item))
            case replies.Head(status=status, stream=stream):
                self._connection.say(Head(self._number, int(status), stream))
            case replies.Failure(code=code, message=text, pointer=pointer, replica=replica, computing=computing):
                self._connection.say(Failed(self._number, code, text, pointer, replica, computing))

    def end(self) -> None:
        self._connection.say(Ended(self._number))

    def lose(self) -> None:
        """Ends whatever waits to say something."""
        self.is_lost = True
        self._task.cancel()

    def read(self, characters: int) -> None:
        self._on_the_way -= characters
        if self._on_the_way < WINDOW and self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def _piece(self, text: str, more: bool) -> None:
        while self._on_the_way >= WINDOW:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        self._on_the_way += len(text)
        self._connection.say(Piece(self._number, text, more), len(text))
