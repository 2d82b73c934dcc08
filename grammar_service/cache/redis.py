"""The shared cache in Redis. Redis in trouble is a miss, within a bounded delay; it is never an error of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from grammar_service.cache.breaker import CircuitBreaker

T = TypeVar("T")

FORMAT_VERSION = 1
"""Part of every key: values of another layout are never read."""


@dataclass(slots=True)
class RedisCounters:
    """`skipped` counts calls that the open breaker kept back, `oversized` values over the size cap in either direction."""

    hits: int = 0
    misses: int = 0
    puts: int = 0
    errors: int = 0
    timeouts: int = 0
    skipped: int = 0
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
    ) -> None:
        self._timeout_s = timeout_ms / 1000
        self._ttl_s = ttl_s
        self._max_bytes = max_value_bytes
        self._prefix = f"{namespace}:artifact:{FORMAT_VERSION}:"
        self._breaker = CircuitBreaker(clock)
        self._redis: Redis = Redis.from_url(
            url,
            password=password,
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            retry=Retry(NoBackoff(), 0),
        )
        self.counters = RedisCounters()

    @property
    def is_open(self) -> bool:
        """The breaker keeps calls back."""
        return self._breaker.is_open

    async def get(self, key: str) -> bytes | None:
        """The value, None where there is none, it is over the size cap, or Redis does not answer in time."""
        # One byte past the cap tells an oversized value without transferring it.
        value = await self._bounded(lambda: self._redis.getrange(self._prefix + key, 0, self._max_bytes))
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
        if await self._bounded(lambda: self._redis.set(self._prefix + key, value, ex=self._ttl_s)):
            self.counters.puts += 1

    async def ping(self) -> bool:
        """Redis answers in time now; asked past the breaker, so that health pages see a recovery at once."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return bool(await self._redis.ping())
        except (TimeoutError, RedisError, OSError, ValueError):
            return False

    async def close(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._redis.aclose()
        except (RedisError, OSError, TimeoutError):
            self.counters.errors += 1

    async def _bounded(self, call: Callable[[], Awaitable[T]]) -> T | None:
        if not self._breaker.admits():
            self.counters.skipped += 1
            return None
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await call()
        except (TimeoutError, RedisError, OSError, ValueError) as error:
            # A ValueError or any RedisError may be an answer that is no Redis protocol at all.
            self._breaker.failed()
            if isinstance(error, TimeoutError) or type(error).__name__ == "TimeoutError":
                self.counters.timeouts += 1
            else:
                self.counters.errors += 1
            return None
        self._breaker.succeeded()
        return answer
