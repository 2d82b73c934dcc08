"""The one way to an artifact: memory, then Redis with a head start, then making it, each key once at a time for a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from grammar_service.artifacts.artifact import AuthenticArtifact
from grammar_service.artifacts.cache.tiered import Found, TieredCache
from grammar_service.artifacts.refusals import refusal_in
from grammar_service.artifacts.seal import Seal
from grammar_service.compiler.background import BackgroundTasks, SingleFlight

T = TypeVar("T")

HEAD_START_S = 0.008
"""Many times what a cache in order takes, for all but the largest values. Along the way of one request, a name may be waited for as long
as a call of Redis may take, and each of the compile replica and the model replica may wait as long as this: 36 ms in all."""


Make = Callable[[], Awaitable[AuthenticArtifact]]


class Lookup:
    """Redis has `head_start_s` before making begins beside it. `background` is what goes on whether or not anybody waits; `remembered`
    counts refusals that were found in place of artifacts.

    Every method raises GrammarError where such a refusal is found.
    """

    def __init__(self, cache: TieredCache, seal: Seal, head_start_s: float) -> None:
        self._cache = cache
        self._seal = seal
        self._head_start_s = head_start_s
        self._asked: SingleFlight[Found | None] = SingleFlight()
        self._made: SingleFlight[Found] = SingleFlight()
        self.background = BackgroundTasks()
        self.remembered = 0

    async def get(
        self, key: str, make: Make, at_once: bool = False, tenant: str = "", again_after: tuple[type[Exception], ...] = ()
    ) -> Found:
        """What memory or Redis has, or what `make` makes of it, as in `make`. `at_once`: asking Redis takes about as long as making."""
        if (held := self.in_memory(key)) is not None:
            return held
        return await found_or_made(
            lambda: self.find(key),
            lambda: self.background.start(self.make(key, make, tenant, again_after)),
            0.0 if at_once else self._head_start_s,
        )

    def in_memory(self, key: str) -> Found | None:
        """Without waiting, and without another look at the bytes."""
        found = self._cache.in_memory(key)
        return self._opened(found) if found else None

    def find(self, key: str) -> asyncio.Task[Found | None]:
        """What memory or Redis has."""
        return self.background.start(self._find(key))

    async def make(self, key: str, make: Make, tenant: str = "", again_after: tuple[type[Exception], ...] = ()) -> Found:
        """What the flight of `key` brings, which `make` starts if there is none of this tenant: another's may wait behind all that he has
        asked for. `again_after`: errors that are not the last word where somebody else's flight ends with one. Raises what `make` raises.
        """
        flight = f"{key} {tenant}"
        joined = flight in self._made
        try:
            return await self._made.run(flight, lambda: self._make(key, make))
        except again_after:
            if not joined:
                raise
        return await self._made.run(flight, lambda: self._make(key, make))

    async def cancel(self) -> None:
        """End whatever is being made."""
        await self._made.close()

    async def close(self) -> None:
        """The same, and wait for what goes on behind answers. The cache stays open."""
        await self.cancel()
        await self.background.close()
        await self._asked.close()

    async def _find(self, key: str) -> Found | None:
        found = await self._asked.run(key, lambda: self._cache.get(key, lambda blob: self._seal.authentic(blob, key)))
        return self._opened(found) if found else None

    async def _make(self, key: str, make: Make) -> Found:
        if (held := self._cache.held(key)) is not None:
            # Another flight of the key has landed while this one's request waited for Redis.
            return self._opened(Found(held, "memory"))
        return self._opened(Found(await make(), "compiled"))

    def _opened(self, found: Found) -> Found:
        if (refusal := refusal_in(found.artifact)) is not None:
            self.remembered += 1
            raise refusal
        return found


async def found_or_made(find: Callable[[], asyncio.Task[T | None]], make: Callable[[], asyncio.Task[T]], head_start_s: float) -> T:
    """What is found, or made where there is nothing (None). After the head start it is made as well, and whichever comes first is taken;
    without one, making comes before asking.

    Both go on when they are not waited for any longer, so that a cache that does not answer is found out. Raises what either raises;
    what is found goes before a failure to make it.
    """
    making: asyncio.Task[T] | None = None
    if head_start_s:
        finding = find()
        await asyncio.wait((finding,), timeout=head_start_s)
    else:
        making, finding = make(), find()
    try:
        if making is None and finding.done():
            found = finding.result()
            return found if found is not None else await make()
        making = making or make()
        await asyncio.wait((finding, making), return_when=asyncio.FIRST_COMPLETED)
        if making.done() and not making.cancelled() and making.exception() is None:
            return making.result()
        found = await finding
        return found if found is not None else await making
    finally:
        # Breaks a reference cycle: task, its error, traceback, this frame. It would keep the grammar.
        del finding, making
