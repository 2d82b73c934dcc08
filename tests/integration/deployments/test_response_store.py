"""Stored responses: each tenant's own, for a while, within their room, and unreadable for whoever has Redis alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from deployments.access.caller import ANYBODY
from deployments.api.translation.response_store import LEASE_S, MemoryResponses, RedisResponses, ResponseStore
from deployments.api.translation.responses_api import BackgroundExchange, ResponsesApi
from deployments.errors import ApiError
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.errors import CacheUnavailable
from grammar_service.sandbox.background_thread import BackgroundThread
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess

pytestmark = pytest.mark.asyncio
TTL_S, ROOM = 60, 40_000
DATA = b"secret words"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def in_redis(server: RedisProcess, clock: Clock, secret: Any = b"secret" * 6, lease_s: int = LEASE_S) -> RedisResponses:
    return RedisResponses(RedisLink(server.url, PASSWORD, 1_000, LinkCounters()), "test", secret, TTL_S, ROOM, clock, lease_s)


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


async def kept(store: ResponseStore, tenant: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if await store.get(tenant, name)]


async def test_what_is_stored_is_found_by_its_tenant_alone(store: ResponseStore) -> None:
    await store.put("one", "a", DATA)
    assert await store.get("one", "a") == DATA
    assert await store.get("two", "a") is None
    assert not await store.delete("two", "a")
    assert await store.delete("one", "a")
    assert await store.get("one", "a") is None
    assert not await store.delete("one", "a")


async def test_the_newest_stay_where_there_is_no_room_for_all(store: ResponseStore, clock: Clock) -> None:
    for number in range(8):
        clock.now += 1
        await store.put("one", str(number), b"x" * 9_000)
    assert await kept(store, "one", map(str, range(8))) == ["4", "5", "6", "7"]


async def test_what_is_deleted_leaves_its_room_to_others(store: ResponseStore, clock: Clock) -> None:
    for number in range(20):
        clock.now += 1
        await store.put("one", str(number), b"x" * 9_000)
        if number % 2:
            assert await store.delete("one", str(number))
    assert await kept(store, "one", map(str, range(20))) == ["14", "16", "18"], "the last one was deleted"


async def test_what_is_in_progress_is_finished_once(store: ResponseStore) -> None:
    await store.start("one", "a", DATA)
    assert await store.is_running("one", "a")
    assert not await store.is_running("two", "a")
    assert not await store.finish("two", "a", b"theirs")
    assert await store.renew([("one", "a"), ("two", "a")]) == [("two", "a")]
    assert await store.get("one", "a") == DATA
    assert await store.finish("one", "a", b"the end")
    assert not await store.finish("one", "a", b"another end")
    assert await store.get("one", "a") == b"the end"
    assert not await store.is_running("one", "a")


async def test_what_is_deleted_in_progress_is_not_finished(store: ResponseStore) -> None:
    await store.start("one", "a", DATA)
    assert await store.delete("one", "a")
    assert await store.renew([("one", "a")]) == [("one", "a")]
    assert not await store.finish("one", "a", DATA)
    assert await store.get("one", "a") is None


async def test_what_is_in_progress_stays_where_there_is_no_room_for_all(store: ResponseStore, clock: Clock) -> None:
    assert await store.start("busy", "a", b"x" * 9_000)
    for number in range(8):
        clock.now += 1
        await store.put("busy", str(number), b"x" * 9_000)
    assert await kept(store, "busy", ["a", *map(str, range(8))]) == ["a", "5", "6", "7"]
    begun = [await store.start("busy", f"b{number}", b"x" * 9_000) for number in range(5)]
    assert begun[0]
    assert not begun[-1], "others take all the room"
    assert await store.finish("busy", "a", b"x" * 9_500)
    assert await store.get("busy", "a")


async def test_what_is_put_in_place_of_another_takes_the_room_of_one(store: ResponseStore, clock: Clock) -> None:
    for number in range(4):
        clock.now += 1
        await store.start("replacing", str(number), b"x" * 4_000)
        await store.finish("replacing", str(number), b"x" * 9_000)
    assert await kept(store, "replacing", map(str, range(4))) == ["0", "1", "2", "3"]


async def test_in_redis_what_nobody_renews_is_lost(redis_server: RedisProcess, clock: Clock) -> None:
    """Its ingress has ended without a word."""
    store = in_redis(redis_server, clock, lease_s=1)
    api = ResponsesApi(store, "m", BackgroundThread(), strict=True, most_bytes=10_000, most_values=1_000)
    exchange = await api.exchange({"input": "hi", "background": True}, ANYBODY, 10)
    assert isinstance(exchange, BackgroundExchange)
    await exchange.start()
    _, name = exchange.key
    begun = await api.stored(name, "")
    assert begun is not None
    assert begun.response["status"] == "in_progress"
    lost = await lost_response(api, name)
    assert (lost["status"], lost["error"]["code"]) == ("failed", "server_error")
    await store.close()


async def lost_response(api: ResponsesApi, name: str) -> dict[str, Any]:
    for _ in range(200):
        stored = await api.stored(name, "")
        assert stored is not None
        if stored.response["status"] != "in_progress":
            return stored.response
        await asyncio.sleep(0.05)  # the poll's interval
    raise AssertionError("it is in progress for ever")


async def test_a_redis_that_is_gone_for_a_while_loses_no_response_in_progress(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    api = ResponsesApi(store, "m", BackgroundThread(), strict=True, most_bytes=10_000, most_values=1_000)
    exchange = await api.exchange({"input": "hi", "background": True}, ANYBODY, 10)
    assert isinstance(exchange, BackgroundExchange)
    await exchange.start()
    redis_server.pause()
    finishing = asyncio.ensure_future(exchange.finish())
    with pytest.raises(ApiError, match="cannot be reached"):
        await api.stored(exchange.key[1], "")
    redis_server.resume()
    await finishing
    assert not await store.is_running(*exchange.key)
    await store.close()


async def test_in_redis_a_tenants_room_is_its_own(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    await store.put("two", "a", DATA)
    for number in range(8):
        await store.put("one", str(number), b"x" * 9_000)
    assert await store.get("two", "a")
    await store.close()


async def test_in_redis_what_has_expired_or_was_evicted_takes_no_room(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    for number in range(4):
        await store.put("own", str(number), b"x" * 9_000)
    clock.now += TTL_S + 1
    await store.put("own", "new", b"x" * 9_000)
    assert redis_server.client.zcard("test:responses:1:own") == 1
    redis_server.client.delete("test:responses:1:own")
    for number in range(4):
        clock.now += 1
        await store.put("own", str(number), b"x" * 9_000)
    assert await kept(store, "own", map(str, range(4))) == ["0", "1", "2", "3"]
    await store.close()


async def test_in_memory_they_go_when_their_time_is_over(clock: Clock) -> None:
    store = MemoryResponses(TTL_S, ROOM, clock)
    await store.put("one", "a", DATA)
    clock.now += TTL_S + 1
    assert await store.get("one", "a") is None


async def test_in_redis_they_expire(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    await store.put("one", "a", DATA)
    assert {0 < redis_server.client.ttl(key) <= TTL_S for key in redis_server.client.keys("test:responses:*")} == {True}
    await store.close()


async def test_who_has_redis_alone_reads_and_changes_nothing(redis_server: RedisProcess, clock: Clock) -> None:
    store, other = in_redis(redis_server, clock), in_redis(redis_server, clock, b"another" * 6)
    await store.put("one", "a", DATA)
    held: Any = redis_server.client.get("test:responses:1:one:a")
    assert DATA not in held
    for moved in ("test:responses:1:two:a", "test:responses:1:one:b"):
        redis_server.client.set(moved, held)
    redis_server.client.set("test:responses:1:one:c", b"rubbish")
    found = await asyncio.gather(store.get("two", "a"), store.get("one", "b"), store.get("one", "c"), other.get("one", "a"))
    assert not any(found)
    both = in_redis(redis_server, clock, (b"another" * 6, b"secret" * 6))
    assert await both.get("one", "a") == DATA, "while one secret replaces the other"
    for each in (store, other, both):
        await each.close()


async def test_a_redis_that_is_gone_says_so(redis_server: RedisProcess, clock: Clock) -> None:
    store = in_redis(redis_server, clock)
    redis_server.kill()
    with pytest.raises(CacheUnavailable):
        await store.put("one", "a", DATA)
    with pytest.raises(CacheUnavailable):
        await store.get("one", "a")
    await store.close()
