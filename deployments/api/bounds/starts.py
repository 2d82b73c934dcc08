"""How soon requests begin: thousands that come at once leave an event loop to others between them."""

from __future__ import annotations

import asyncio
from collections import deque


class Starts:
    """One request begins in each round of the event loop, tenants in turn: where thousands of one tenant's come at once, each step of
    another's request would wait for a step of all of them."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_taken = False

    async def turn(self, tenant: str) -> None:
        """Returns when it is this request's turn: at once, where it is the first one of the round."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._next_round, loop)
            return
        turn = loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        await turn

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_taken = bool(self._waiting)
        if self._is_taken:
            tenant = next(iter(self._waiting))
            queue = self._waiting.pop(tenant)
            turn = queue.popleft()
            if queue:
                self._waiting[tenant] = queue  # behind all others
            if not turn.done():
                turn.set_result(None)
            loop.call_soon(self._next_round, loop)
