"""Clients that read endless streams, and count pieces by when they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from deployments.reporting.quantiles import quantile
from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.front_door.clients.events import OK, read_pieces
from load_tests.front_door.clients.messages import PieceCourse, PiecesCame, Report, WindowBegan, WindowEnded


async def run_pieces(course: PieceCourse, tell: Callable[[Report], None]) -> None:
    """Tells the window's begin and end, and then what came; the clients leave in the middle of their answers."""
    replies: list[list[Reply]] = [[] for _ in range(course.clients)]
    clients = [asyncio.create_task(_stream(course, asked)) for asked in replies]
    await asyncio.wait(clients, timeout=course.ramp_s, return_when=asyncio.FIRST_EXCEPTION)
    tell(WindowBegan())
    began, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(course.seconds)
    ended = time.perf_counter()
    tell(WindowEnded(ended - began, time.process_time() - used))
    turned_away = sum(client.done() for client in clients)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    came = counted(replies, began, ended)
    tell(replace(came, failed=came.failed + turned_away))


async def _stream(course: PieceCourse, asked: list[Reply]) -> None:
    connection, content = Connection(course.host, course.port), request(course.host, course.port, course.body, course.key)
    try:
        while True:
            asked.append(Reply())
            await connection.ask(content, asked[-1])
    finally:
        connection.close()


def counted(replies: Sequence[Sequence[Reply]], began: float, ended: float) -> PiecesCame:
    """What came in between; the replies of each client in their order, the last one perhaps without its end."""
    failed, gaps, pieces, characters = 0, list[float](), 0, 0
    for of_client in replies:
        times = []
        for reply in of_client:
            found, finish = read_pieces(reply.parts) if reply.status in (OK, 0) else ([], "error")
            is_lost = not reply.status and reply is not of_client[-1]  # the connection ended before the answer did
            failed += finish == "error" or is_lost
            within = [(at_s, text) for at_s, text in found if began <= at_s <= ended]
            characters += sum(len(text) for _, text in within)
            times += [at_s for at_s, _ in within]
        pieces += len(times)
        gaps += _gaps(times)
    return PiecesCame(pieces, characters, failed, quantile(gaps, 0.99))


def _gaps(times: Sequence[float]) -> Iterator[float]:
    return (later - earlier for earlier, later in pairwise(times))
