"""When an ingress admits requests and pieces of bodies, and the delay of its refusals."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

WINDOW_S = 0.002
"""An ingress answers at most some 200 requests a second. Beside 1,792 clients of another tenant with bodies of 1.7 MB, light ones waited
24 ms for their first token at the median, as long as alone; with one admission in each iteration of the event loop 43 ms."""
SHARED_S = 1.0
"""For so long after requests of two tenants have come one after the other, they share the ingress."""
REFUSAL_DELAY_S = 0.5, 1.5
"""Of different lengths: clients that were refused together would all come back together."""
MAX_DELAYED_REFUSALS = 1024
"""Refusals delayed at a time. Each connection may buffer 64 KiB of its body."""


class AdmissionQueue:
    """Admits one request, or piece of a large body, of each tenant in every window of `WINDOW_S`, or in each iteration of the event loop
    while only one tenant sends any. Otherwise an iteration has a step of everything that has come, and thousands from one tenant slow down
    each step of all others. What waits must have a place
    (`Places`): the queue has no bound of its own."""

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
        """Whether it had one that still waited."""
        queue = self._waiting[tenant]
        while queue and (first := queue.popleft()).done():
            pass
        is_there = not first.done()
        if is_there:
            first.set_result(None)
        if not queue:
            del self._waiting[tenant]
        return is_there


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
