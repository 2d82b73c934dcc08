"""A connection to Redis that never keeps anybody waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, RedisError

from grammar_service.artifacts.cache.breaker import CircuitBreaker
from grammar_service.errors import CacheUnavailable

T = TypeVar("T")

CLOSE_TIMEOUT_S = 1.0
MAX_CALLS = 64
"""At a time; more wait for one to end. Beyond 100 connections redis-py (8.1) raises an error, which would look like a fault of Redis."""
LOOKS = 10
"""Into how many parts the time for an answer falls. To connect and to ask takes a loop about as many turns."""


@dataclass(slots=True)
class LinkCounters:
    """`skipped` counts calls that the open breaker kept back."""

    errors: int = 0
    timeouts: int = 0
    skipped: int = 0


class RedisLink:
    """Connects on first use; every call ends within about `timeout_ms`. Counts in the `counters` that it is given.

    A call whose connection breaks is made anew `retries` times: after a restart of Redis, the connections that are held are dead.
    """

    def __init__(
        self,
        url: str,
        password: str | None,
        timeout_ms: int,
        counters: LinkCounters,
        clock: Callable[[], float] = time.monotonic,
        retries: int = 0,
        ca_file: str | None = None,
    ) -> None:
        """`ca_file`: with `rediss://`, who may have signed the server's certificate (PEM); None: whoever this machine trusts."""
        self._timeout_s = timeout_ms / 1000
        self._connections = asyncio.Semaphore(MAX_CALLS)
        self._counters = counters
        self._breaker = CircuitBreaker(clock)
        trust: dict[str, Any] = {} if ca_file is None else {"ssl_ca_certs": ca_file}
        self._redis: Redis = Redis.from_url(
            url,
            password=password,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), retries),
            **trust,
        )

    async def ask(self, call: Callable[[Redis], Awaitable[T]]) -> T:
        """What `call` gets of the server.

        Raises:
            CacheUnavailable: no answer in time, an error for an answer, or the breaker is open.
        """
        if not self._breaker.admits():
            self._counters.skipped += 1
            raise CacheUnavailable("Redis has been failing; it is asked again in a few seconds")
        await self._connected()
        try:
            answer = await self._in_time(call(self._redis))
        except OutOfMemoryError as error:
            # It is full, and goes on to serve what it has.
            self._breaker.succeeded()
            self._counters.errors += 1
            raise CacheUnavailable("Redis has no memory left") from error
        except (TimeoutError, RedisError, OSError, ValueError) as error:
            # A ValueError or any RedisError may be an answer that is no Redis protocol at all.
            self._breaker.failed()
            if isinstance(error, TimeoutError) or type(error).__name__ == "TimeoutError":
                self._counters.timeouts += 1
            else:
                self._counters.errors += 1
            raise CacheUnavailable(f"Redis does not answer: {error or type(error).__name__}") from error
        finally:
            self._connections.release()
        self._breaker.succeeded()
        return answer

    async def ping(self) -> bool:
        """Redis answers in time now; asked past the breaker, so that health pages see a recovery at once."""
        try:
            return bool(await self._in_time(self._redis.ping()))
        except (TimeoutError, RedisError, OSError, ValueError):
            return False

    async def _connected(self) -> None:
        """Waits for a connection; that there is none is no fault of Redis. Raises CacheUnavailable."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._connections.acquire()
        except TimeoutError:
            self._counters.timeouts += 1
            raise CacheUnavailable("all connections to Redis are in use") from None

    async def _in_time(self, answer: Awaitable[T]) -> T:
        """Waits a part of the time after the other: a loop that is late finds the answer and the end of the time at once, and a Redis that
        has answered would be taken for one that does not. Raises TimeoutError."""
        asked = asyncio.ensure_future(answer)
        try:
            for _ in range(LOOKS):
                done, _ = await asyncio.wait((asked,), timeout=self._timeout_s / LOOKS)
                if done:
                    return asked.result()
        finally:
            asked.cancel()
        raise TimeoutError

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._redis.aclose()
        except (RedisError, OSError, TimeoutError):
            self._counters.errors += 1
