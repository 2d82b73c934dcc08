"""One computation a key, however many wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Waiters share one task. A waiter that is cancelled leaves the others, and the task, alone; an exception reaches all."""

    def __init__(self) -> None:
        self._flights: dict[str, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: str) -> bool:
        return key in self._flights

    async def run(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """The result of the flight of `key`, which `make` starts if there is none."""
        task = self._flights.get(key)
        if task is None:
            task = asyncio.create_task(_awaited(make))
            self._flights[key] = task
            task.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel all flights and wait until they have ended."""
        flights = list(self._flights.values())
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _land(self, key: str, task: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        if not task.cancelled():
            # Retrieved here, since all waiters may have been cancelled.
            task.exception()


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()
