"""Names in a real Redis: kept without expiry, believed only when authentic, and helped out from memory when Redis is in trouble."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.errors import CacheUnavailable, EntryError
from grammar_service.registry import GrammarEntry, GrammarNames, RegistryStore, Room, Stored
from grammar_service.registry.store import RegistryCounters
from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess

pytestmark = pytest.mark.asyncio
PATIENT_MS, TIMEOUT_MS = 10_000, 500
"""The second is for those that a Redis in trouble is to keep waiting."""
MAX_BYTES = 4096


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def store_of(
    server: RedisProcess, clock: Clock | None = None, secret: bytes = b"secret", namespace: str = "test", timeout_ms: int = PATIENT_MS
) -> RegistryStore:
    counters = RegistryCounters()
    link = RedisLink(server.url, PASSWORD, timeout_ms, counters, clock or time.monotonic)
    return RegistryStore(link, counters, namespace, secret, MAX_BYTES)


def entry_of(name: str, pattern: str = "[a-z]+", tenant: str = "") -> GrammarEntry:
    return GrammarEntry(name, GrammarSpec(GrammarKind.REGEX, pattern), 1_700_000_000, tenant=tenant)


async def all_of(source: RegistryStore | GrammarNames) -> list[str]:
    return [entry.id async for entry in source.entries()]


@pytest_asyncio.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[RegistryStore]:
    store = store_of(redis_server)
    yield store
    await store.close()


async def test_what_is_added_is_found_by_another_process_and_never_expires(store: RegistryStore, redis_server: RedisProcess) -> None:
    assert await store.get("word") is None
    assert await store.add(entry_of("word"), Room(10)) is Stored.NEW
    other = store_of(redis_server)
    assert await other.get("word") == entry_of("word")
    assert await all_of(other) == ["word"]
    assert redis_server.client.ttl("test:registry:2::word") == -1
    await other.close()


async def test_a_taken_name_is_only_replaced_on_purpose(store: RegistryStore) -> None:
    await store.add(entry_of("word"), Room(10))
    assert await store.add(entry_of("word", "other"), Room(10)) is Stored.TAKEN
    assert await store.get("word") == entry_of("word")
    await store.replace(entry_of("word", "other"), Room())
    assert await store.get("word") == entry_of("word", "other")


async def test_there_is_room_for_so_many_and_again_after_a_deletion(store: RegistryStore) -> None:
    for name in ("a", "b"):
        assert await store.add(entry_of(name), Room(2)) is Stored.NEW
    assert await store.add(entry_of("c"), Room(2)) is Stored.NO_NAMES_LEFT
    assert await store.delete("a")
    assert not await store.delete("a")
    assert await store.add(entry_of("c"), Room(2)) is Stored.NEW
    assert await all_of(store) == ["b", "c"]


async def test_a_tenant_sees_changes_and_deletes_only_its_own(store: RegistryStore) -> None:
    mine, yours = entry_of("word", "mine", "me"), entry_of("word", "yours", "you")
    for entry in (mine, yours):
        assert await store.add(entry, Room()) is Stored.NEW
    await store.replace(entry_of("word", "new", "me"), Room())
    assert await store.get("word", "you") == yours
    assert await store.delete("word", "me")
    assert await store.get("word", "you") == yours
    assert await store.get("word") is None
    assert [entry async for entry in store.entries("me")] == []
    assert [entry async for entry in store.entries()] == [yours]


async def test_an_entry_of_another_tenant_is_not_believed(store: RegistryStore, redis_server: RedisProcess) -> None:
    await store.add(entry_of("word", tenant="you"), Room())
    assert redis_server.client.copy("test:registry:2:you:word", "test:registry:2:me:word")
    with pytest.raises(EntryError):
        await store.get("word", "me")


async def test_each_tenant_has_room_for_its_own_bytes_and_all_for_theirs(store: RegistryStore) -> None:
    room = Room(10, tenant_bytes=1500, all_bytes=2500)
    large = "x" * 900
    assert await store.add(entry_of("a", large, "me"), room) is Stored.NEW
    assert await store.add(entry_of("b", large, "me"), room) is Stored.TENANT_HAS_NO_ROOM
    assert await store.add(entry_of("a", large, "you"), room) is Stored.NEW
    assert await store.add(entry_of("a", large, "third"), room) is Stored.ALL_HAVE_NO_ROOM
    assert await store.replace(entry_of("a", "x" * 1600, "me"), room) is Stored.TENANT_HAS_NO_ROOM
    assert await store.replace(entry_of("a", "small", "me"), room) is Stored.NEW
    assert await store.add(entry_of("a", large, "third"), room) is Stored.NEW
    assert await store.delete("a", "third")
    assert await store.add(entry_of("b", large, "me"), room) is Stored.NEW


async def test_who_registers_at_once_gets_no_more_room_than_one_after_the_other(redis_server: RedisProcess) -> None:
    """Counting first and writing later let all of them in."""
    stores = [store_of(redis_server) for _ in range(8)]
    answers = await asyncio.gather(*(one.add(entry_of(f"n{number}"), Room(3)) for number, one in enumerate(stores)))
    assert answers.count(Stored.NEW) == 3
    assert answers.count(Stored.NO_NAMES_LEFT) == 5
    assert len(await all_of(stores[0])) == 3
    for one in stores:
        await one.close()


async def test_what_somebody_deleted_by_hand_is_counted_no_more(store: RegistryStore, redis_server: RedisProcess) -> None:
    room = Room(10, tenant_bytes=1500)
    await store.add(entry_of("a", "x" * 900, "me"), room)
    redis_server.client.delete("test:registry:2:me:a", "test:registry:2:me")
    assert await store.add(entry_of("b", "x" * 900, "me"), room) is Stored.NEW


async def test_many_names_are_listed_in_order(store: RegistryStore) -> None:
    names = [f"n{number:03}" for number in range(50)]
    for name in reversed(names):
        await store.add(entry_of(name), Room(100))
    assert await all_of(store) == names


async def test_nobody_can_change_what_a_name_means(store: RegistryStore, redis_server: RedisProcess) -> None:
    """Neither with another name's entry, nor with another deployment's, nor with a secret of his own."""
    place = "test:registry:2::word"
    await store.add(entry_of("word"), Room(10))
    await store.add(entry_of("other", "other"), Room(10))
    elsewhere, forger = store_of(redis_server, namespace="elsewhere"), store_of(redis_server, secret=b"guess", namespace="forged")
    await elsewhere.add(entry_of("word", "elsewhere"), Room(10))
    await forger.add(entry_of("word", "forged"), Room(10))
    for source in ("test:registry:2::other", "elsewhere:registry:2::word", "forged:registry:2::word"):
        assert redis_server.client.copy(source, place, replace=True)
        with pytest.raises(EntryError):
            await store.get("word")
        assert await all_of(store) == ["other"]
    assert store.counters.damaged == 6
    await elsewhere.close()
    await forger.close()


@pytest.mark.parametrize("rubbish", [b"rubbish", b"MKR\x01" + bytes(500), bytes(5_000_000)])
async def test_rubbish_is_no_entry_and_can_be_replaced(store: RegistryStore, redis_server: RedisProcess, rubbish: bytes) -> None:
    redis_server.client.set("test:registry:2::word", rubbish)
    with pytest.raises(EntryError):
        await store.get("word")
    await store.replace(entry_of("word"), Room())
    assert await store.get("word") == entry_of("word")


async def test_a_value_of_another_type_is_no_entry(store: RegistryStore, redis_server: RedisProcess) -> None:
    redis_server.client.lpush("test:registry:2::word", "x")
    with pytest.raises(EntryError):
        await store.get("word")
    assert await store.delete("word")


async def test_names_that_were_seen_work_while_redis_is_away(redis_server: RedisProcess) -> None:
    clock = Clock()
    store = store_of(redis_server, clock, timeout_ms=TIMEOUT_MS)
    names = GrammarNames({}, store)
    await store.add(entry_of("word"), Room(10))
    assert await names.find("word") == entry_of("word")
    redis_server.pause()
    for _ in range(20):
        assert await names.find("word") == entry_of("word")
        with pytest.raises(CacheUnavailable):
            await names.find("unseen")
    assert (store.counters.timeouts, store.counters.skipped) == (3, 37), "then nobody waits any more"
    assert store.counters.from_memory == 20
    redis_server.resume()
    clock.now = 60.0
    assert await names.find("unseen") is None
    await store.close()


async def test_a_deleted_name_is_gone_for_all_at_once(store: RegistryStore, redis_server: RedisProcess) -> None:
    here, there = GrammarNames({}, store), GrammarNames({}, other := store_of(redis_server))
    await store.add(entry_of("word"), Room(10))
    assert await here.find("word")
    assert await there.find("word")
    await store.delete("word")
    assert await there.find("word") is None
    redis_server.kill()
    with pytest.raises(CacheUnavailable):
        await there.find("word")
    await other.close()


async def test_a_damaged_entry_does_not_take_a_name_away_from_who_has_seen_it(store: RegistryStore, redis_server: RedisProcess) -> None:
    names = GrammarNames({}, store)
    await store.add(entry_of("word"), Room(10))
    assert await all_of(names) == ["word"]
    redis_server.client.set("test:registry:2::word", b"rubbish")
    assert await names.find("word") == entry_of("word")


async def test_names_of_the_settings_come_first_and_need_no_redis(store: RegistryStore, redis_server: RedisProcess) -> None:
    names = GrammarNames({"word": entry_of("word", "fixed")}, store)
    await store.add(entry_of("word"), Room(10))
    await store.add(entry_of("alone"), Room(10))
    assert await names.find("word") == entry_of("word", "fixed")
    assert await all_of(names) == ["word", "alone"]
    redis_server.kill()
    assert await names.find("word") == entry_of("word", "fixed")
    alone = GrammarNames({"word": entry_of("word")}, None)
    assert await alone.find("other") is None
    assert await all_of(alone) == ["word"]


async def test_a_name_can_be_added_though_redis_has_cut_the_connections_that_were_held(redis_server: RedisProcess) -> None:
    counters = RegistryCounters()
    patient = RedisLink(redis_server.url, PASSWORD, TIMEOUT_MS, counters, retries=1)
    store = RegistryStore(RedisLink(redis_server.url, PASSWORD, TIMEOUT_MS, counters), counters, "test", b"secret", MAX_BYTES, patient)
    assert await store.add(entry_of("before"), Room(10)) is Stored.NEW
    redis_server.client.client_kill_filter(_type="normal", skipme=True)
    assert await store.add(entry_of("after"), Room(10)) is Stored.NEW
    await store.close()
