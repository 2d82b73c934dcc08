"""Clients of keys that have limits, and ask for more all the time: in a process of their own, on a new connection for each request, so
that they come to all ingresses alike."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe

from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.front_door.clients.events import OK, read_pieces
from load_tests.tenants.bodies import chat
from load_tests.tenants.flooding import NICENESS, PATIENCE_S

REFUSED = 429
AGAIN_S = 0.25
"""After a refusal: sooner than a client that heeds it would come again."""
_TOTAL = re.compile(rb'"total_tokens":\s*(\d+)')


@dataclass(frozen=True, slots=True)
class Limited:
    """`what` is limited, as a key's limits name it, to `most`; so many clients send the body again and again."""

    what: str
    most: int
    body: bytes
    clients: int


TOLD = {"stream_options": {"include_usage": True}}
LIMITED = (
    Limited("concurrent_requests", 3, chat(20, 48, **TOLD), 12),
    Limited("requests_per_minute", 40, chat(20, 1, **TOLD), 4),
    Limited("tokens_per_minute", 2_500, chat(20, 16, **TOLD), 4),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that has ended; times by a clock that does not run backwards, `first_s` and `last_s` of the answer's bytes. `failed`: it
    was neither refused nor answered to its end."""

    sent_s: float
    first_s: float
    last_s: float
    refused: bool
    failed: bool
    tokens: int


@dataclass(slots=True)
class Visited:
    """By what is limited; there when it is over."""

    visits: Mapping[str, Sequence[Visit]] = field(default_factory=dict)


@contextmanager
def visiting(host: str, port: int, keys: Mapping[str, str]) -> Iterator[Visited]:
    """All of LIMITED, to the end of the block; `keys` by what they limit."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, host, port, dict(keys)), daemon=True)
    process.start()
    found = Visited()
    try:
        assert ours.poll(PATIENCE_S), "the limited clients have not begun"
        ours.recv()
        yield found
    finally:
        ours.send(None)
        if ours.poll(PATIENCE_S):
            found.visits = ours.recv()
        process.join(PATIENCE_S)


def _main(pipe: Pipe, host: str, port: int, keys: Mapping[str, str]) -> None:
    os.nice(NICENESS)
    asyncio.run(_run(pipe, host, port, keys))


async def _run(pipe: Pipe, host: str, port: int, keys: Mapping[str, str]) -> None:
    visits: dict[str, list[Visit]] = {one.what: [] for one in LIMITED}

    async def client(one: Limited) -> None:
        content = request(host, port, one.body, keys[one.what])
        while True:
            visits[one.what].append(visit := await _visit(host, port, content))
            if visit.refused or visit.failed:
                await asyncio.sleep(AGAIN_S)

    clients = [asyncio.create_task(client(one)) for one in LIMITED for _ in range(one.clients)]
    pipe.send(None)
    await asyncio.to_thread(pipe.recv)
    for each in clients:
        each.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    pipe.send(visits)


async def _visit(host: str, port: int, content: bytes) -> Visit:
    connection, reply, sent_s = Connection(host, port), Reply(), time.perf_counter()
    try:
        await connection.ask(content, reply)
    except OSError:
        reply = Reply()  # nobody has answered
    finally:
        connection.close()
    return visit_of(reply, sent_s, time.perf_counter())


def visit_of(reply: Reply, sent_s: float, ended_s: float) -> Visit:
    whole = b"".join(part.content for part in reply.parts)
    answered = reply.status == OK and b"[DONE]" in whole and read_pieces(reply.parts)[1] not in ("", "error")
    first_s = reply.parts[0].at_s if reply.parts else ended_s
    tokens = int(found[-1]) if answered and (found := _TOTAL.findall(whole)) else 0
    refused = reply.status == REFUSED
    return Visit(sent_s, first_s, ended_s, refused, not answered and not refused, tokens)
