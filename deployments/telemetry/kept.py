"""What many may ask for and is costly to read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from grammar_service.errors import MaskcastError

T = TypeVar("T")


class Late(MaskcastError):
    """Reading takes longer than anybody waits."""


class Kept(Generic[T]):
    """Reads at most once in `seconds`, however many ask: who comes while it is being read waits for the same, and for `patience_s` at most.
    `clock` in seconds."""

    def __init__(
        self, read: Callable[[], Awaitable[T]], seconds: float, clock: Callable[[], float] = time.monotonic, patience_s: float = 2.0
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._patience_s = patience_s
        self.last: T | None = None
        """What was read last, however long ago."""
        self._clock = clock
        self._task: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """Raises what reading raises, to all who have waited for it; the next one reads anew. Late: not within the patience; reading goes
        on, for those who come later."""
        if self._task is None or (self._task.done() and self._clock() >= self._until):
            self._task = asyncio.create_task(self._reading())
        done, _ = await asyncio.wait([self._task], timeout=self._patience_s)
        if not done:
            raise Late
        return self._task.result()

    async def _reading(self) -> T:
        self._until = 0.0
        value = self.last = await self._read()
        self._until = self._clock() + self._seconds
        return value
