"""What many may ask for and is costly to read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Reads at most once in `seconds`, however many ask: who comes while it is being read waits for the same. `clock` in seconds."""

    def __init__(self, read: Callable[[], Awaitable[T]], seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._task: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """Raises what reading raises, to all who have waited for it; the next one reads anew."""
        if self._task is None or (self._task.done() and self._clock() >= self._until):
            self._task = asyncio.create_task(self._reading())
        return await asyncio.shield(self._task)

    async def _reading(self) -> T:
        self._until = 0.0
        value = await self._read()
        self._until = self._clock() + self._seconds
        return value
