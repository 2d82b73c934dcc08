"""Clients that go on asking the same questions, in turn, while replicas come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from threading import Event

import httpx

from load_tests.routing.clients import PATIENCE_S, ask
from load_tests.routing.figures import OK
from load_tests.routing.traffic import Body


@dataclass(frozen=True, slots=True)
class Call:
    """For the body of this `number`; times are of a clock that does not run backwards, in seconds. `status` is HTTP's, 0 where there was
    no answer; `code` is that of the error."""

    number: int
    sent_at: float
    ended_at: float
    status: int
    code: str = ""

    @property
    def is_answered(self) -> bool:
        return self.status == OK

    @property
    def is_clean(self) -> bool:
        """It is answered, or an error of the service's own says why not."""
        return self.is_answered or bool(self.status and self.code)


@contextmanager
def calling(url: str, bodies: Sequence[Body], clients: int) -> Iterator[list[Call]]:
    """So many clients call as long as the block lasts; it ends when the last call has. The list grows meanwhile."""
    calls: list[Call] = []
    enough = Event()
    with ThreadPoolExecutor(1) as thread:
        called = thread.submit(lambda: asyncio.run(_call(url, bodies, clients, enough, calls)))
        try:
            yield calls
        finally:
            enough.set()
    called.result()


def back_s(calls: Sequence[Call], bodies: int, since: float) -> float | None:
    """How long after `since` the last one of so many bodies was answered that were sent after it; None: not all are."""
    first: dict[int, float] = {}
    for call in calls:
        if call.is_answered and call.sent_at >= since:
            first[call.number] = min(call.ended_at, first.get(call.number, call.ended_at))
    return max(first.values()) - since if len(first) == bodies else None


async def _call(url: str, bodies: Sequence[Body], clients: int, enough: Event, calls: list[Call]) -> None:
    left = cycle(enumerate(bodies))

    async def client() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, trust_env=False) as http:
            while not enough.is_set():
                number, body = next(left)
                sent_at = time.monotonic()
                asked = await ask(http, body)
                calls.append(Call(number, sent_at, time.monotonic(), asked.status, asked.code))

    await asyncio.gather(*(client() for _ in range(clients)))
