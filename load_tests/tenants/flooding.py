"""The flood, in a process of its own that lets all others go first: in service its clients would be other machines."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection as Pipe

from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.tenants.bodies import Flood

NICENESS = 10
SLOW_BYTES, SLOW_S = 256, 0.25
"""What a slow reader reads at a time, and how often."""
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Struck:
    """How one request of a flood was answered; `status` 0: the connection was closed."""

    status: int
    seconds: float


@dataclass(slots=True)
class Flooding:
    """`struck` is there when it is over: what was answered until then."""

    struck: list[Struck] = field(default_factory=list)


@contextmanager
def flooding(flood: Flood, host: str, port: int, key: str) -> Iterator[Flooding]:
    """From its first request on, to the end of the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, flood, host, port, key), daemon=True)
    process.start()
    found = Flooding()
    try:
        assert ours.poll(PATIENCE_S), "the flood has not begun"
        ours.recv()
        yield found
    finally:
        ours.send(None)
        if ours.poll(PATIENCE_S):
            found.struck = ours.recv()
        process.join(PATIENCE_S)


def _main(pipe: Pipe, flood: Flood, host: str, port: int, key: str) -> None:
    os.nice(NICENESS)
    asyncio.run(_run(pipe, flood, host, port, key))


async def _run(pipe: Pipe, flood: Flood, host: str, port: int, key: str) -> None:
    struck: list[Struck] = []
    requests, numbers = [request(host, port, body, key) for body in flood.bodies], count()

    async def client() -> None:
        connection = Connection(host, port)
        try:
            for number in numbers:
                content = requests[number % len(requests)]
                sent, reply = time.perf_counter(), Reply()
                with suppress(OSError):
                    await (_read_slowly(host, port, content) if flood.slow else connection.ask(content, reply))
                    struck.append(Struck(reply.status, time.perf_counter() - sent))
        finally:
            connection.close()

    clients = [asyncio.create_task(client()) for _ in range(flood.clients)]
    pipe.send(None)
    await asyncio.to_thread(pipe.recv)
    for one in clients:
        one.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    pipe.send(struck)


async def _read_slowly(host: str, port: int, content: bytes) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=SLOW_BYTES)
    try:
        writer.write(content)
        read = b"any"
        while read and b"[DONE]" not in read:
            await asyncio.sleep(SLOW_S)
            read = await reader.read(SLOW_BYTES)
    finally:
        writer.close()
