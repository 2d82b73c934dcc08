"""What tenants use at the other ingresses, told and heard through Redis: turns are then by all that they use."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from redis.asyncio import Redis

from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.errors import CacheUnavailable

FORMAT_VERSION = 1
EXCHANGE_S = 0.5
"""Between two calls of Redis, which carry what all tenants have used since. Shares are those of many seconds."""
FORGOTTEN_S = 3600
"""After so long without a request of anybody, in Redis. Only differences say anything."""


class UseElsewhere:
    """In weighted tokens (`router.turns.shares`). A tenant is asked about while it uses something here: whoever does not has no turn to be
    given. While Redis is away each ingress goes by what it sees itself, and later says nothing of it.
    """

    def __init__(self, link: RedisLink, namespace: str) -> None:
        self._link = link
        self._key = f"{namespace}:turns:{FORMAT_VERSION}"
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

    async def exchange(self) -> None:
        """Tell what was used here, and hear what was used elsewhere."""
        if not (told := {tenant: round(tokens) for tenant, tokens in self._own.items()}):
            return
        self._own.clear()
        try:
            totals = await self._link.ask(lambda redis: self._add(redis, told))
        except CacheUnavailable:
            self._totals.clear()
            return
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

    async def _add(self, redis: Redis, told: Mapping[str, int]) -> list[int]:
        async with redis.pipeline(transaction=False) as calls:
            for tenant, tokens in told.items():
                calls.hincrby(self._key, tenant, tokens)
            calls.expire(self._key, FORGOTTEN_S)
            totals: list[int] = await calls.execute()
        return totals

    async def _exchange_often(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            await self.exchange()
            await asyncio.sleep(0 if self._closing else EXCHANGE_S)
