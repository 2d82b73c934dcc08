"""Stored responses: each tenant's own, for a while, within their room, and unreadable for whoever has Redis alone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from deployments.api.translation.response_store import MemoryResponses, RedisResponses, ResponseStore, StoredResponse
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.errors import CacheUnavailable
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess

pytestmark = pytest.mark.asyncio
TTL_S, ROOM = 60, 40_000


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def in_redis(server: RedisProcess, clock: Clock, secret: Any = b"secret" * 6) -> RedisResponses:
    return RedisResponses(RedisLink(server.url, PASSWORD, 10_000, LinkCounters()), "test", secret, TTL_S, ROOM, clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, redis_server: RedisProcess, clock: Clock) -> AsyncIterator[ResponseStore]:
    if request.param == "memory":
        yield MemoryResponses(TTL_S, ROOM, clock)
    else:
        redis = in_redis(redis_server, clock)
        yield redis
        await redis.close()


def response(name: str, text: str = "hi") -> StoredResponse:
    return StoredResponse({"id": name, "output": [text]}, [{"role": "user", "content": "héllo"}])


async def test_what_is_stored_is_found_by_its_tenant_alone(store: ResponseStore) -> None:
    assert await store.put("one", response("a"))
    assert await store.get("one", "a") == response("a")
    assert await store.get("two", "a") is None
    assert not await store.delete("two", "a")
    assert await store.delete("one", "a")
    assert await store.get("one", "a") is None
    assert not await store.delete("one", "a")


async def test_the_newest_stay_where_there_is_no_room_for_all(store: ResponseStore) -> None:
    for number in range(8):
        assert await store.put("one", response(str(number), secrets.token_hex(4000)))
    assert await store.put("two", response("0", secrets.token_hex(4000)))
    kept = [name for name in map(str, range(8)) if await store.get("one", name)]
    assert kept == ["4", "5", "6", "7"]
    assert await store.get("two", "0")


async def test_one_that_is_larger_than_the_room_is_not_stored(store: ResponseStore) -> None:
    await store.put("one", response("a"))
    assert not await store.put("one", response("b", secrets.token_hex(ROOM)))
    assert await store.get("one", "b") is None
    assert await store.get("one", "a")


async def test_one_that_is_stored_again_counts_once(store: ResponseStore) -> None:
    await store.put("one", response("first", secrets.token_hex(4000)))
    for _ in range(8):
        await store.put("one", response("a", secrets.token_hex(8000)))
    assert await store.get("one", "first")


async def test_in_memory_they_go_when_their_time_is_over(clock: Clock) -> None:
    store = MemoryResponses(TTL_S, ROOM, clock)
    await store.put("one", response("a"))
    clock.now += TTL_S + 1
    assert await store.get("one", "a") is None


async def test_in_redis_they_expire(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    await store.put("one", response("a"))
    assert {0 < redis_server.client.ttl(key) <= TTL_S for key in redis_server.client.keys("test:responses:*")} == {True}
    await store.close()


async def test_who_has_redis_alone_reads_and_changes_nothing(redis_server: RedisProcess, clock: Clock) -> None:
    store, other = in_redis(redis_server, clock), in_redis(redis_server, clock, b"another" * 6)
    await store.put("one", response("a", "secret words"))
    held: Any = redis_server.client.get("test:responses:1:one:a")
    assert b"secret words" not in held
    for moved in ("test:responses:1:two:a", "test:responses:1:one:b"):
        redis_server.client.set(moved, held)
    redis_server.client.set("test:responses:1:one:c", b"rubbish")
    found = await asyncio.gather(store.get("two", "a"), store.get("one", "b"), store.get("one", "c"), other.get("one", "a"))
    assert not any(found)
    both = in_redis(redis_server, clock, (b"another" * 6, b"secret" * 6))
    assert await both.get("one", "a") == response("a", "secret words"), "while one secret replaces the other"
    for each in (store, other, both):
        await each.close()


async def test_a_redis_that_is_gone_says_so(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    redis_server.kill()
    with pytest.raises(CacheUnavailable):
        await store.put("one", response("a"))
    with pytest.raises(CacheUnavailable):
        await store.get("one", "a")
    await store.close()
