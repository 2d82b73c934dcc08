from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from grammar_service.artifacts.artifact import ArtifactHeader, AuthenticArtifact
from grammar_service.artifacts.cache import Found, MemoryCache, RedisCache, TieredCache
from grammar_service.artifacts.cache.link import MAX_CALLS, LinkCounters, RedisLink
from grammar_service.errors import CacheUnavailable
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess

pytestmark = pytest.mark.asyncio
TIMEOUT_MS = 1000
"""Of caches whose server is paused."""
PATIENCE_MS = 10_000
"""Of all others: on a busy machine a server in good health takes its time."""


def cache_of(server: RedisProcess, password: str = PASSWORD, timeout_ms: int = PATIENCE_MS) -> RedisCache:
    return RedisCache(server.url, password, "test", timeout_ms, 60, max_value_bytes=1000)


@pytest_asyncio.fixture
async def cache(redis_server: RedisProcess) -> AsyncIterator[RedisCache]:
    cache = cache_of(redis_server)
    yield cache
    await cache.close()


async def test_what_is_put_is_found_under_the_namespace_and_expires(cache: RedisCache, redis_server: RedisProcess) -> None:
    assert await cache.get("k") is None
    await cache.put("k", b"\0binary\xff")
    assert await cache.get("k") == b"\0binary\xff"
    (name,) = redis_server.client.keys()
    assert name == b"test:artifact:2:k"
    assert 0 < redis_server.client.ttl(name) <= 60
    assert (cache.counters.hits, cache.counters.misses, cache.counters.puts) == (1, 1, 1)


async def test_values_over_the_cap_are_neither_stored_nor_transferred(cache: RedisCache, redis_server: RedisProcess) -> None:
    await cache.put("big", bytes(1001))
    assert redis_server.client.keys() == []
    redis_server.client.set("test:artifact:2:huge", bytes(5_000_000))
    assert await cache.get("huge") is None
    assert cache.counters.oversized == 2


async def test_a_value_of_another_type_is_a_miss(cache: RedisCache, redis_server: RedisProcess) -> None:
    redis_server.client.lpush("test:artifact:2:k", "x")
    assert await cache.get("k") is None
    assert cache.counters.errors == 1


async def test_a_killed_server_is_a_miss_and_opens_the_breaker(cache: RedisCache, redis_server: RedisProcess) -> None:
    await cache.put("k", b"v")
    redis_server.kill()
    for _ in range(6):
        assert await cache.get("k") is None
        await cache.put("k", b"v")
    assert cache.counters.errors + cache.counters.timeouts == 3
    assert cache.counters.skipped == 9


async def test_a_paused_server_delays_by_the_timeout_at_most(redis_server: RedisProcess) -> None:
    cache = cache_of(redis_server, timeout_ms=TIMEOUT_MS)
    await cache.put("k", b"v")
    redis_server.pause()
    try:
        for _ in range(20):
            assert await cache.get("k") is None
        assert (cache.counters.timeouts, cache.counters.skipped) == (3, 17), "then nobody waits any more"
    finally:
        redis_server.resume()
        await cache.close()


async def test_more_calls_than_connections_wait_for_one(redis_server: RedisProcess) -> None:
    counters = LinkCounters()
    link = RedisLink(redis_server.url, PASSWORD, 60_000, counters)
    assert all(await asyncio.gather(*(link.ask(lambda redis: redis.ping()) for _ in range(300))))
    assert (counters.timeouts, counters.errors) == (0, 0)
    await link.close()


async def test_who_gets_no_connection_in_time_finds_no_fault_of_redis(redis_server: RedisProcess) -> None:
    counters, go = LinkCounters(), asyncio.Event()
    patient = RedisLink(redis_server.url, PASSWORD, 60_000, counters)
    link = RedisLink(redis_server.url, PASSWORD, 50, counters)
    link._connections = patient._connections  # which others have for long

    async def slow(_: Redis) -> bool:
        return await go.wait()

    others = [asyncio.create_task(patient.ask(slow)) for _ in range(MAX_CALLS)]
    await asyncio.sleep(0)  # now each has one
    for _ in range(5):
        with pytest.raises(CacheUnavailable, match="in use"):
            await link.ask(lambda redis: redis.ping())
    go.set()
    assert all(await asyncio.gather(*others))
    link._timeout_s = 60
    assert await link.ask(lambda redis: redis.ping()), "the breaker is closed"
    assert counters.skipped == 0
    for each in (link, patient):
        await each.close()


async def test_a_late_loop_is_not_taken_for_a_late_server(redis_server: RedisProcess) -> None:
    """A service that has more to do than it can finds the answer and the end of its time at once."""
    counters = LinkCounters()
    link = RedisLink(redis_server.url, PASSWORD, TIMEOUT_MS, counters)

    async def held_up(redis: Redis) -> bool:
        asyncio.get_running_loop().call_soon(_hold, 2 * TIMEOUT_MS / 1000)
        return bool(await redis.ping())

    assert await link.ask(held_up)
    assert await link.ask(held_up)
    assert (counters.timeouts, counters.errors) == (0, 0)
    await link.close()


def _hold(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def test_a_server_that_comes_back_is_used_again(redis_server: RedisProcess) -> None:
    now = 0.0
    cache = RedisCache(redis_server.url, PASSWORD, "test", TIMEOUT_MS, 60, 1000, clock=lambda: now)
    await cache.put("k", b"v")
    redis_server.pause()
    for _ in range(3):
        assert await cache.get("k") is None
    redis_server.resume()
    assert await cache.get("k") is None
    now = 60.0
    # An open breaker would let only the first one out.
    for _ in range(2):
        assert await cache.get("k") == b"v"
    await cache.close()


async def test_a_full_server_takes_nothing_and_serves_what_it_has(cache: RedisCache, redis_server: RedisProcess) -> None:
    await cache.put("k", b"v")
    redis_server.client.config_set("maxmemory-policy", "noeviction")
    redis_server.client.config_set("maxmemory", "1")
    for _ in range(5):
        await cache.put("other", b"v")
        assert await cache.get("k") == b"v"
    assert (cache.counters.puts, cache.counters.errors, cache.counters.skipped) == (1, 5, 0)


async def test_a_wrong_password_is_a_miss(redis_server: RedisProcess) -> None:
    cache = cache_of(redis_server, password="wrong")
    assert await cache.get("k") is None
    await cache.put("k", b"v")
    assert cache.counters.errors == 2
    await cache.close()


async def test_rubbish_is_a_counted_miss_and_overwritten(redis_server: RedisProcess) -> None:
    good = AuthenticArtifact(b"good", ArtifactHeader("k", "xgrammar", "1", "f", 1.0, 0))

    def authentic(blob: bytes) -> AuthenticArtifact | None:
        return good if blob == good.blob else None

    tiered = TieredCache(MemoryCache(1000), cache_of(redis_server))
    redis_server.client.set("test:artifact:2:k", b"rubbish")
    assert await tiered.get("k", authentic) is None
    assert tiered.counters()["corrupt"] == 1
    await tiered.publish(good)
    other = TieredCache(MemoryCache(1000), cache_of(redis_server))
    assert await other.get("k", authentic) == Found(good, "redis")
    assert await other.get("k", authentic) == Found(good, "memory")
    await tiered.close()
    await other.close()
