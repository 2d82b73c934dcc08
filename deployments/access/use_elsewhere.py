"""What tenants use, and how many seats they have and wait for, at the other ingresses, told and heard through Redis: turns are then by all
that they use, and seats are kept for all that are there."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from redis.asyncio import Redis

from deployments.access.presence_elsewhere import PresenceElsewhere
from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.errors import CacheUnavailable
from router.turns.progress import Tenants
from router.turns.shares import Presence

FORMAT_VERSION = 1
EXCHANGE_S = 0.5
"""Between two calls of Redis, which carry what all tenants have used since. Shares are those of many seconds."""
FORGOTTEN_S = 3600
"""After so long without a request of anybody, in Redis. Only differences say anything."""


class UseElsewhere:
    """Use is in weighted tokens (`router.turns.shares`). What a tenant uses is asked about while it uses something here: whoever does not
    has no turn to be given. Where it is, all hear while they have tenants themselves. While Redis is away each ingress goes by what it sees
    itself, and later says nothing of it. `clock` in seconds.
    """

    def __init__(self, link: RedisLink, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._key = f"{namespace}:turns:{FORMAT_VERSION}"
        self._there = PresenceElsewhere(f"{namespace}:there:{FORMAT_VERSION}", clock)
        self._tenants: Tenants | None = None
        self._own: defaultdict[str, float] = defaultdict(float)
        self._totals: dict[str, int] = {}
        self._heard: defaultdict[str, float] = defaultdict(float)
        self._wake = asyncio.Event()
        self._exchanging: asyncio.Task[None] | None = None
        self._closing = False

    def used(self, tenant: str, tokens: float) -> None:
        """So many more, here; below 0 where an estimate was too high. The others hear of it in a moment."""
        self._own[tenant] += tokens
        self._wake.set()
        if self._exchanging is None:
            self._exchanging = asyncio.create_task(self._exchange_often())

    def take(self, tenant: str) -> float:
        """What it was heard to have used elsewhere since it was last taken."""
        return self._heard.pop(tenant, 0.0)

    def meet(self, tenants: Tenants) -> None:
        """From now on, the others hear of these tenants, and these of theirs."""
        self._tenants = tenants

    async def exchange(self) -> None:
        """Tell what was used here and who is, and hear the same of elsewhere."""
        told = {tenant: round(tokens) for tenant, tokens in self._own.items()}
        here = self._tenants.present() if self._tenants is not None and not self._closing else {}
        if not told and not here and not self._there.has_told:
            return
        self._own.clear()
        try:
            totals, there = await self._link.ask(lambda redis: self._exchanged(redis, told, here))
        except CacheUnavailable:
            self._totals.clear()
            totals, there = [], {}
        if self._tenants is not None:
            self._tenants.heard(there)
        if any(one.held or one.asked for one in here.values()):
            self._wake.set()  # also where nothing is used meanwhile
        for tenant, total in zip(told, totals, strict=False):
            before, self._totals[tenant] = self._totals.get(tenant), total
            if before is not None:
                # Less than nothing: Redis has forgotten.
                self._heard[tenant] += max(0, total - before - told[tenant])

    async def close(self) -> None:
        self._closing = True
        self._wake.set()
        if self._exchanging is not None:
            # Not cancelled: in the middle of a call, Redis' client may take that for the end of the call alone.
            await self._exchanging
        await self.exchange()
        await self._link.close()

    async def _exchanged(
        self, redis: Redis, told: Mapping[str, int], here: Mapping[str, Presence]
    ) -> tuple[list[int], dict[str, Presence]]:
        async with redis.pipeline(transaction=False) as calls:
            for tenant, tokens in told.items():
                calls.hincrby(self._key, tenant, tokens)
            calls.expire(self._key, FORGOTTEN_S)
            self._there.tell(calls, here)
            answers: list[Any] = await calls.execute()
        return answers[: len(told)], self._there.of_others(answers[-1])

    async def _exchange_often(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            await self.exchange()
            await asyncio.sleep(0 if self._closing else EXCHANGE_S)
