"""Where requests wait for their group, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from router.dispatcher import Dispatcher
from router.grouping import Dispatched, Release

LOOK_S = 0.002
"""Seconds: an engine's step ends several requests, which are told one after the other, and one tick is enough for all their seats."""


class WaitingRoom:
    """Ticks a dispatcher once in each turn of the event loop in which somebody arrives, and when it asks for it. Should that fail,
    `failed` hears of it and all go ungrouped: nobody waits for a policy that is broken."""

    def __init__(self, dispatcher: Dispatcher, failed: Callable[[Exception], None]) -> None:
        self._dispatcher = dispatcher
        self._failed = failed
        self._releases: dict[str, asyncio.Future[str | None]] = {}
        self._ticking: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._releases)

    def look(self) -> None:
        """A replica may have got room: ticks in a moment, when others may have as well."""
        if self._releases and self._ticking is None and self._looking is None:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(LOOK_S, self._tick, loop)

    async def released(self, request: Dispatched) -> str | None:
        """Waits for the group of `request`, and gives the replica that it goes to, None where it has none. Who is cancelled leaves."""
        loop = asyncio.get_running_loop()
        release: asyncio.Future[str | None] = loop.create_future()
        self._releases[request.name] = release
        try:
            self._dispatcher.arrived(request, loop.time())
            self._ticking = self._ticking or loop.call_soon(self._tick, loop)
            return await release
        except asyncio.CancelledError:
            self._dispatcher.gone(request.name)
            raise
        finally:
            del self._releases[request.name]

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for planned in (self._ticking, self._looking, self._timer):
            if planned is not None:
                planned.cancel()
        self._ticking = self._looking = self._timer = None
        try:
            for release in self._dispatcher.tick(loop.time()):
                self._let_go(release)
            again = self._dispatcher.next_tick()
        except Exception as error:  # noqa: BLE001  # the outermost frame of a callback: whoever waits must be answered
            self._failed(error)
            self._let_all_go()
            return
        if again is not None:
            self._timer = loop.call_at(again, self._tick, loop)

    def _let_go(self, release: Release) -> None:
        for name in release.requests:
            waiting = self._releases.get(name)
            if waiting is not None and not waiting.done():
                waiting.set_result(release.replica)

    def _let_all_go(self) -> None:
        for waiting in self._releases.values():
            if not waiting.done():
                waiting.set_result(None)
        for name in self._releases:
            self._dispatcher.gone(name)
