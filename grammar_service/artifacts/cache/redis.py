"""The shared cache in Redis. Redis in trouble is a miss, within a bounded delay; it is never an error of a request."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from redis.asyncio import Redis

from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.errors import CacheUnavailable

T = TypeVar("T")

FORMAT_VERSION = 2
"""Part of every key: values of another layout are never read."""


@dataclass(slots=True)
class RedisCounters(LinkCounters):
    """`oversized` counts values over the size cap in either direction."""

    hits: int = 0
    misses: int = 0
    puts: int = 0
    oversized: int = 0


class RedisCache:
    """Bytes by key, for `ttl_s` seconds. Connects on first use; every call ends within about `timeout_ms`."""

    def __init__(
        self,
        url: str,
        password: str | None,
        namespace: str,
        timeout_ms: int,
        ttl_s: int,
        max_value_bytes: int,
        clock: Callable[[], float] = time.monotonic,
        ca_file: str | None = None,
    ) -> None:
        self._ttl_s = ttl_s
        self._max_bytes = max_value_bytes
        self._prefix = f"{namespace}:artifact:{FORMAT_VERSION}:"
        self.counters = RedisCounters()
        self._link = RedisLink(url, password, timeout_ms, self.counters, clock, ca_file=ca_file)

    async def get(self, key: str) -> bytes | None:
        """The value, None where there is none, it is over the size cap, or Redis does not answer in time."""
        # One byte past the cap tells an oversized value without transferring it.
        value = await self._answer(lambda redis: redis.getrange(self._prefix + key, 0, self._max_bytes))
        if not isinstance(value, bytes):
            return None
        if len(value) > self._max_bytes:
            self.counters.oversized += 1
            return None
        if not value:
            self.counters.misses += 1
            return None
        self.counters.hits += 1
        return value

    async def put(self, key: str, value: bytes) -> None:
        """Store a value if it is under the size cap and Redis takes it in time."""
        if len(value) > self._max_bytes:
            self.counters.oversized += 1
            return
        if await self._answer(lambda redis: redis.set(self._prefix + key, value, ex=self._ttl_s)):
            self.counters.puts += 1

    async def ping(self) -> bool:
        """Redis answers in time now; asked past the breaker, so that health pages see a recovery at once."""
        return await self._link.ping()

    async def close(self) -> None:
        await self._link.close()

    async def _answer(self, call: Callable[[Redis], Awaitable[T]]) -> T | None:
        try:
            return await self._link.ask(call)
        except CacheUnavailable:
            return None
