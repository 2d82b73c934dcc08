"""Asks at a pace, with so many clients at most, and counts what became of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.front_door.clients.events import DONE, events
from load_tests.soak.traffic import Asked, Kind

CLIENTS = 12
PATIENCE_S = 120.0
BAD_REQUEST = 400
ANSWERED, FAILED, LEFT, REFUSED, LOST = "answered", "failed", "left", "refused", "lost"
EXAMPLES, EXAMPLE_BYTES = 20, 400


class Begun(Connection):
    """Tells when the first of an answer's body has come."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.begun = asyncio.Event()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self.begun.set()


class Driving:
    """`ended` are the requests that have come to an end, by how; whoever looks on meanwhile may read it. `examples`: what the first ones of
    those got that were lost, or failed."""

    def __init__(self, host: str, port: int, told: Callable[[], object] = lambda: None) -> None:
        self.ended: Counter[str] = Counter()
        self.examples: list[str] = []
        self._address = host, port
        self._told = told

    async def drive(self, asked: Iterable[Asked], per_second: float) -> None:
        """Returns when all have ended. Late ones go as soon as a client is free."""
        due, started = enumerate(asked), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._client(due, per_second, started))

    async def _client(self, due: Iterator[tuple[int, Asked]], per_second: float, started: float) -> None:
        connection = Begun(*self._address)
        for number, each in due:
            await asyncio.sleep(started + number / per_second - time.monotonic())
            how = await self._ask(connection, each)
            if how in (LEFT, LOST):
                connection.close()
                connection = Begun(*self._address)
            self.ended[how] += 1
            self._told()
        connection.close()

    async def _ask(self, connection: Begun, asked: Asked) -> str:
        reply, content = Reply(), request(*self._address, json.dumps(asked.body).encode("ascii"))
        if asked.kind is Kind.LEFT:
            return await _leave(connection, content, reply)
        with suppress(OSError):  # nobody is there, or takes too long
            async with asyncio.timeout(PATIENCE_S):
                await connection.ask(content, reply)
        how = outcome(asked.kind, reply)
        if how in (LOST, FAILED) and len(self.examples) < EXAMPLES:
            body = b"".join(part.content for part in reply.parts)[-EXAMPLE_BYTES:]
            self.examples.append(f"{how}, {asked.kind}, status {reply.status}: {body.decode(errors='replace')}")
        return how


async def _leave(connection: Begun, content: bytes, reply: Reply) -> str:
    """When the first of the answer has come."""
    connection.begun.clear()  # of the answer before
    answer, begun = asyncio.create_task(connection.ask(content, reply)), asyncio.create_task(connection.begun.wait())
    await asyncio.wait((answer, begun), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    answer.cancel()
    with suppress(OSError, asyncio.CancelledError):
        await answer
    return LEFT if reply.parts else LOST


def outcome(kind: Kind, reply: Reply) -> str:
    """What a reply that has come to its end is. A constraint that nobody can serve must be refused, and no other one."""
    if kind is Kind.REFUSED:
        return REFUSED if reply.status == BAD_REQUEST else LOST
    if reply.status >= 500:
        return FAILED
    if reply.status != 200:
        return LOST
    if kind is Kind.WHOLE:
        return ANSWERED
    told = [data for _, data in events(reply.parts)]
    if any(data.startswith(b'{"error"') for data in told):
        return FAILED
    return ANSWERED if told and told[-1] == DONE else LOST
