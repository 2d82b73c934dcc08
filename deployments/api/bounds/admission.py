"""When an ingress admits requests and pieces of bodies, and the delay of its refusals."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

WINDOW_S = 0.002
"""Beside 1,792 clients of another tenant with bodies of 1.7 MB, light clients' median time to first token was 43 ms with windows of one
iteration, and is 24 ms, as long as alone (`load_tests.tenants`). For one tenant alone such windows cost 4 % of the requests a second
(`load_tests.front_door`, extraction, 32 streaming clients)."""
SHARED_S = 1.0
"""How long several tenants count as sending requests after the tenant has last changed from one request to the next."""
REFUSAL_DELAY_S = 0.5, 1.5
"""The shortest and the longest delay. With equal delays, clients that are refused together would retry together."""
MAX_DELAYED_REFUSALS = 1024
"""Refusals delayed at a time. Each connection may buffer 64 KiB of its body."""


class AdmissionQueue:
    """Admits one request, or piece of a large body, of each tenant in a window. A window lasts `WINDOW_S` while several tenants send
    requests, and one iteration of the event loop while one does. Without this, an iteration has a step of everything that has come, and
    thousands of requests of one tenant slow down each step of all others.

    The queue has no bound of its own: what waits in it must have a place (`Places`).
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._admitted: set[str] = set()
        """The tenants of which one was admitted in this window."""
        self._last_tenant = ""
        self._shared_until = 0.0

    async def admit(self, tenant: str) -> None:
        """Returns when the request may go on: at once, if it is the first one of its tenant in this window."""
        loop = asyncio.get_running_loop()
        if tenant != self._last_tenant:
            self._last_tenant, self._shared_until = tenant, loop.time() + SHARED_S
        if not self._admitted:
            self._end_window_later(loop)
        if tenant not in self._admitted:
            self._admitted.add(tenant)
            return
        admitted = loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(admitted)
        await admitted

    def _next_window(self, loop: asyncio.AbstractEventLoop) -> None:
        self._admitted = {tenant for tenant in [*self._waiting] if self._admits_next(tenant)}
        if self._admitted:
            self._end_window_later(loop)

    def _end_window_later(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(WINDOW_S if loop.time() < self._shared_until else 0.0, self._next_window, loop)

    def _admits_next(self, tenant: str) -> bool:
        """Whether there was one whose client has not left."""
        waiting = self._waiting.pop(tenant)
        while waiting and waiting[0].done():
            waiting.popleft()
        if not waiting:
            return False
        waiting.popleft().set_result(None)
        if waiting:
            self._waiting[tenant] = waiting
        return True


class RefusalDelay:
    """Delays refusals, because clients may retry immediately: seven of them sent 1,500 requests a second."""

    def __init__(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._pause = pause
        self._delayed = 0

    async def wait(self) -> None:
        if self._delayed == MAX_DELAYED_REFUSALS:
            return
        self._delayed += 1
        try:
            await self._pause(random.uniform(*REFUSAL_DELAY_S))
        finally:
            self._delayed -= 1
