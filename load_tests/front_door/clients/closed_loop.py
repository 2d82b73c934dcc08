"""Clients in a closed loop: each asks, reads the answer to its end, and asks again, on a connection of its own."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.front_door.clients.events import read_answer
from load_tests.front_door.clients.messages import Answer, Answered, Course, Report, WindowBegan, WindowEnded

_Asked = tuple[int, float, float, Reply]
"""The body's number, when it was sent, when its answer had come, and the answer."""
RAMP_S = 1.0
"""Within which the clients join, one after the other, as users do. Begun at once, clients whose answers are equally long stay in step with
one another, and every step is a burst."""


async def run_course(course: Course, tell: Callable[[Report], None]) -> None:
    """Tells the window's begin and end, and then the answers; what is not over at the window's end is awaited."""
    run = _Run(course)
    if course.seconds is None:
        tell(WindowBegan())
        began, used = time.perf_counter(), time.process_time()
        await run.once()
        tell(WindowEnded(time.perf_counter() - began, time.process_time() - used))
        return tell(Answered(run.answers(-math.inf, math.inf)))
    clients = [asyncio.create_task(run.client(RAMP_S * number / course.clients)) for number in range(course.clients)]
    await asyncio.wait([asyncio.create_task(run.all_answered.wait()), *clients], return_when=asyncio.FIRST_COMPLETED)
    tell(WindowBegan())
    began, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(course.seconds)
    ended = time.perf_counter()
    tell(WindowEnded(ended - began, time.process_time() - used))
    run.over = True
    await asyncio.gather(*clients)
    return tell(Answered(run.answers(began, ended)))


class _Run:
    def __init__(self, course: Course) -> None:
        self._course = course
        self._connect, self._requests = _way(course)
        self._asked: list[_Asked] = []
        self._waiting = course.clients
        self.all_answered = asyncio.Event()
        self.over = False
        self._numbers = count()

    async def client(self, after_s: float) -> None:
        """Until it is over."""
        await asyncio.sleep(after_s)
        await self._ask_all((number % len(self._requests) for number in self._numbers), loop=True)

    async def once(self) -> None:
        """Each body."""
        left = iter(range(len(self._requests)))
        await asyncio.gather(*(self._ask_all(left, loop=False) for _ in range(self._course.clients)))

    async def _ask_all(self, numbers: Iterator[int], *, loop: bool) -> None:
        connection = self._connect()
        first = True
        for number in numbers:
            if loop and self.over:
                break
            sent, reply = time.perf_counter(), Reply()
            await connection.ask(self._requests[number], reply)
            self._asked.append((number, sent, time.perf_counter(), reply))
            if first:
                first = False
                self._answered_once()
        connection.close()

    def _answered_once(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self.all_answered.set()

    def answers(self, began: float, ended: float) -> Sequence[Answer]:
        """Of the requests that were on their way in between."""
        return [
            replace(
                read_answer(number, reply.status, self._course.stream, reply.parts, sent),
                share=overlap(sent, came, began, ended),
                ended=began <= came <= ended,
            )
            for number, sent, came, reply in self._asked
            if came >= began and sent <= ended
        ]


class Asking(Protocol):
    """Of one client."""

    async def ask(self, request: bytes, reply: Reply) -> None:
        """Returns when the answer has ended. Raises OSError: nobody answers."""

    def close(self) -> None: ...


def _way(course: Course) -> tuple[Callable[[], Asking], Sequence[bytes]]:
    """Makes what a client asks by, and what it sends there."""
    if not course.joins:
        requests = [request(course.host, course.port, body, course.key, course.path) for body in course.bodies]
        return lambda: Connection(course.host, course.port), requests
    from load_tests.front_door.clients.by_handle import Callers  # Ray reads the environment when it is imported

    callers = Callers(course.clients, course.stream)
    return callers.one, course.bodies


def overlap(start: float, end: float, began: float, ended: float) -> float:
    """What share of the time from start to end lies within the window."""
    if end <= start:
        return 1.0
    return max(0.0, min(end, ended) - max(start, began)) / (end - start)
