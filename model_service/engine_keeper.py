"""The engine of a replica, and the next one where its processes have ended or hang. The replica keeps its place with Ray Serve, its
connections and its grammars meanwhile: a new engine in an old replica is there in half the time that a new replica takes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from model_service.errors import EngineDead
from model_service.hang_watch import PERIOD_S, HangWatch, Look

logger = logging.getLogger(__name__)


class Mortal(Protocol):
    """What is kept."""

    async def check_health(self) -> None:
        """Raises EngineDead."""

    def close(self) -> None: ...

    def look(self) -> Look:
        """What its processes do."""

    def kill(self) -> None:
        """End its processes, whatever they do; `check_health` then tells of it."""


Kept = TypeVar("Kept", bound=Mortal)


class Laps:
    """Where the time of a start goes: seconds by part, in their order."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self.seconds: dict[str, float] = {}

    def lap(self, part: str) -> None:
        """What has taken the time since the last part, or since the beginning."""
        now = self._clock()
        self.seconds[part], self._since = now - self._since, now

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self.seconds.items())
        return f"{sum(self.seconds.values()):.1f} s ({parts})"


class EngineKeeper(Generic[Kept]):
    """`make` starts an engine that can answer at once, and tells what took how long. One that hangs for `hang_s` is killed
    (`hang_watch`)."""

    def __init__(self, make: Callable[[Laps], Awaitable[Kept]], hang_s: float) -> None:
        self._make = make
        self._hang_s = hang_s
        self._watching: asyncio.Task[None] | None = None
        self._engine: Kept | None = None
        self._next: asyncio.Task[None] | None = None
        self.restarts = 0
        self.restart_s: dict[str, float] = {}
        """Of the last restart, by part, from when it was noticed that the engine had ended."""

    async def start(self) -> None:
        """Raises what `make` raises."""
        laps = Laps()
        self._engine = await self._make(laps)
        logger.info("the engine has started in %s", laps)
        self._watching = asyncio.create_task(self._watch())

    @property
    def current(self) -> Kept | None:
        """None while another one is started."""
        return self._engine

    async def engine(self, patience_s: float) -> Kept:
        """The one that answers; while another one is started, whoever has patience waits for it. Raises EngineDead."""
        if self._engine is None and self._next is not None and patience_s:
            await asyncio.wait([self._next], timeout=patience_s)
        if self._engine is None:
            raise EngineDead("the engine process has ended, and another one is not there yet")
        return self._engine

    def ended(self, engine: Kept) -> None:
        """`engine` answers no more: another one is started, once, however many tell of it."""
        if engine is self._engine:
            logger.warning("the engine's processes have ended; others are started")
            self._engine = None
            self._next = asyncio.create_task(self._replace(engine))

    async def check_health(self) -> None:
        """Raises EngineDead where no other engine would start: the replica is to be replaced."""
        if self._engine is not None:
            try:
                await self._engine.check_health()
            except EngineDead:
                self.ended(self._engine)
        elif self._next is not None and self._next.done():
            raise EngineDead("the engine process has ended, and no other would start") from self._next.exception()

    async def close(self) -> None:
        for task in filter(None, (self._watching, self._next)):
            task.cancel()
            await asyncio.wait([task])
        if self._engine is not None:
            self._engine.close()

    async def _replace(self, dead: Kept) -> None:
        laps = Laps()
        await asyncio.to_thread(dead.close)
        laps.lap("ending")
        self._engine = await self._make(laps)
        self.restarts += 1
        self.restart_s = laps.seconds
        logger.warning("another engine has started in %s", laps)

    async def _watch(self) -> None:
        watched, watch = self._engine, HangWatch(self._hang_s)
        while True:
            await asyncio.sleep(PERIOD_S)
            if (engine := self._engine) is None:
                continue
            if engine is not watched:
                watched, watch = engine, HangWatch(self._hang_s)
            if watch.hangs(engine.look(), time.monotonic()):
                logger.error("the engine has requests and has computed nothing for long: its processes are killed")
                engine.kill()
                watch = HangWatch(self._hang_s)
