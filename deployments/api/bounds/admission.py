"""The order in which an ingress admits requests, and the delay of its refusals."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

REFUSAL_DELAY_S = 1.0
MAX_DELAYED_REFUSALS = 256
"""Refusals delayed at a time. Each connection may buffer 64 KiB of its body."""


class AdmissionQueue:
    """Admits one request in each iteration of the event loop, round-robin over tenants. Otherwise an iteration has a step of every request
    that has come, and thousands from one tenant slow down each step of all others."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._has_admitted = False

    async def admit(self, tenant: str) -> None:
        """Returns when the request may begin: at once, if it is the first one of this iteration."""
        loop = asyncio.get_running_loop()
        if not self._has_admitted:
            self._has_admitted = True
            loop.call_soon(self._iterate, loop)
            return
        admitted = loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(admitted)
        await admitted

    def _iterate(self, loop: asyncio.AbstractEventLoop) -> None:
        self._has_admitted = bool(self._waiting)
        if self._has_admitted:
            self._admit_next()
            loop.call_soon(self._iterate, loop)

    def _admit_next(self) -> None:
        tenant = next(iter(self._waiting))
        queue = self._waiting.pop(tenant)
        admitted = queue.popleft()
        if queue:
            self._waiting[tenant] = queue  # behind all other tenants
        if not admitted.done():
            admitted.set_result(None)


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
            await self._pause(REFUSAL_DELAY_S)
        finally:
            self._delayed -= 1
