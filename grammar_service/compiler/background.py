"""Work that goes on whether or not anybody waits for it: each key once at a time, and not soon again where it has failed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

REST_S = 60.0
_MOST_RESTING = 10_000


class BackgroundTasks:
    """Holds its tasks until they are done: the event loop alone would let them be collected."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Wait until all of it has ended, with what it has started meanwhile."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        _retrieve(task)


class SingleFlight(Generic[T]):
    """Waiters of one key share one task. A waiter that is cancelled leaves the others, and the task, alone; an exception reaches all."""

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
        try:
            return await asyncio.shield(task)
        finally:
            del task  # breaks a reference cycle with its error's traceback

    async def close(self) -> None:
        """Cancel all flights and wait until they have ended."""
        flights = list(self._flights.values())
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _land(self, key: str, task: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        _retrieve(task)


class Resting:
    """Remembers which grammars could not be compiled just now, so that those with a stopgap are not tried again at every request.

    It is no negative cache: nobody is refused because of it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return self._clock() < self._until.get(key, float("-inf"))

    def rest(self, key: str) -> None:
        self._until[key] = self._clock() + REST_S
        self._until.move_to_end(key)
        if len(self._until) > _MOST_RESTING:
            self._until.popitem(last=False)


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at the task's exception, since all who waited for it may have left: asyncio would complain."""
    if not task.cancelled():
        task.exception()
