"""Limits of tenants at several ingresses, which count together in a real Redis, and alone while it is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from deployments.access.caller import Caller, Scope
from deployments.access.gate import Gate
from deployments.access.ledger import Admission, Ledger
from deployments.access.shared_window import SharedWindow
from deployments.access.window import Used, Verdict, bucket_of, counted, decide
from deployments.api.api_server import open_ledger
from deployments.config import KeyLimits, parse_settings
from deployments.errors import ApiError
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from model_service.messages import Endpoint
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process

pytestmark = pytest.mark.asyncio
PATIENT_MS = 10_000  # on a busy machine, this process itself may be late


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def window_of(server: RedisProcess, namespace: str, ingress: str) -> SharedWindow:
    return SharedWindow(RedisLink(server.url, PASSWORD, PATIENT_MS, LinkCounters()), namespace, ingress)


def caller(**limits: Any) -> Caller:
    return Caller("me", frozenset(Scope), KeyLimits(**limits))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dying_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    """For whoever does something to it."""
    with redis_process(tmp_path) as process:
        yield process


@pytest_asyncio.fixture
async def ingresses(redis_server: RedisProcess, clock: Clock) -> AsyncIterator[list[Ledger]]:
    """Two, with nobody's limits used."""
    namespace = uuid4().hex
    made = [Ledger(window_of(redis_server, namespace, name), 2, clock) for name in ("a", "b")]
    yield made
    for ledger in made:
        await ledger.close()


def is_in(admission: Admission | None) -> bool:
    return admission is not None and admission.standing.verdict is Verdict.ADMITTED


async def test_ingresses_count_together(ingresses: list[Ledger], clock: Clock) -> None:
    """To the limit, and not over it, in any sixty seconds."""
    entered = [await ingresses[number % 2].enter(caller(requests_per_minute=10), 0) for number in range(20)]
    assert [is_in(one) for one in entered] == [True] * 10 + [False] * 10
    last = entered[9]
    assert last is not None
    assert last.standing.remaining_requests == 0
    clock.now += 60
    assert not is_in(await ingresses[0].enter(caller(requests_per_minute=10), 0))
    clock.now += 5
    assert is_in(await ingresses[0].enter(caller(requests_per_minute=10), 0))


async def test_who_enters_at_once_gets_no_more(ingresses: list[Ledger]) -> None:
    """Although calls overtake each other on their connections: many times, since not all do."""
    for number in range(40):
        mine = Caller(str(number), frozenset(), KeyLimits(concurrent_requests=3, requests_per_minute=100))
        entered = await asyncio.gather(*(ingresses[place % 2].enter(mine, 0) for place in range(20)))
        assert sum(map(is_in, entered)) == 3


async def test_a_refusal_leaves_nothing_that_holds_up_others(ingresses: list[Ledger]) -> None:
    here, there = ingresses
    mine = caller(concurrent_requests=2)
    entered = [one for one in await asyncio.gather(*(here.enter(mine, 0) for _ in range(20))) if one is not None]
    for one in filter(is_in, entered):
        here.leave(one, 0)
    await here.settle()
    again = await asyncio.gather(*(there.enter(mine, 0) for _ in range(2)))
    assert all(map(is_in, again))


async def test_a_request_that_ends_makes_room_at_other_ingresses(ingresses: list[Ledger]) -> None:
    here, there = ingresses
    mine = caller(concurrent_requests=1)
    first = await here.enter(mine, 0)
    assert first is not None
    assert is_in(first)
    assert not is_in(await there.enter(mine, 0))
    here.leave(first, 0)
    await here.settle()
    assert is_in(await there.enter(mine, 0))


async def test_what_an_ingress_held_that_ended_is_forgotten(redis_server: RedisProcess, ingresses: list[Ledger], clock: Clock) -> None:
    """Its last word counts for a minute."""
    mine = caller(concurrent_requests=1)
    assert is_in(await ingresses[0].enter(mine, 0))
    clock.now += 60
    assert not is_in(await ingresses[1].enter(mine, 0))
    clock.now += 10
    assert is_in(await ingresses[1].enter(mine, 0))


@pytest.mark.parametrize("field", ["r0x10", "t007", "xyz", "c", "r1.5", "t" + "9" * 400])
async def test_what_no_ingress_writes_is_taken_out(redis_server: RedisProcess, clock: Clock, field: str) -> None:
    namespace = uuid4().hex
    ledger = Ledger(window_of(redis_server, namespace, "a"), 1, clock)
    async with Redis.from_url(redis_server.url, password=PASSWORD) as redis:
        assert is_in(await ledger.enter(caller(requests_per_minute=2), 0))
        (key,) = [one async for one in redis.scan_iter(f"{namespace}:*")]
        await redis.hset(key, field, "many")
        await redis.hset(key, f"r{bucket_of(clock())}0", "1")  # of another time
        assert is_in(await ledger.enter(caller(requests_per_minute=2), 0))
        assert not is_in(await ledger.enter(caller(requests_per_minute=2), 0))
        assert field.encode() not in await redis.hkeys(key)
        await redis.hset(key, mapping={f"x{number}": 1 for number in range(10_001)})
        assert is_in(await ledger.enter(caller(requests_per_minute=2), 0)), "all are forgotten"
    await ledger.close()


async def test_what_is_to_be_told_is_kept_where_a_client_leaves_while_it_is_told(dying_redis: RedisProcess, clock: Clock) -> None:
    namespace = uuid4().hex
    here, there = (Ledger(window_of(dying_redis, namespace, name), 2, clock) for name in "ab")
    mine = caller(tokens_per_minute=100)
    first = await here.enter(mine, 10)
    assert first is not None
    dying_redis.pause()
    here.leave(first, 90)
    entering = asyncio.create_task(here.enter(mine, 1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    dying_redis.resume()
    await here.settle()
    assert not is_in(await there.enter(mine, 11))
    for ledger in (here, there):
        await ledger.close()


async def test_tokens_that_an_answer_did_not_take_come_back(ingresses: list[Ledger]) -> None:
    here, there = ingresses
    mine = caller(tokens_per_minute=100)
    first = await here.enter(mine, 90)
    assert first is not None
    refused = await there.enter(mine, 20)
    assert refused is not None
    assert refused.standing.verdict is Verdict.TOKENS
    here.leave(first, 15)
    await here.settle()
    second = await there.enter(mine, 20)
    assert second is not None
    assert (second.standing.verdict, second.standing.remaining_tokens) == (Verdict.ADMITTED, 65)


async def test_tenants_have_limits_of_their_own(ingresses: list[Ledger]) -> None:
    one, other = (Caller(name, frozenset(), KeyLimits(requests_per_minute=1)) for name in ("one", "other"))
    assert is_in(await ingresses[0].enter(one, 0))
    assert is_in(await ingresses[0].enter(other, 0))
    assert not is_in(await ingresses[1].enter(one, 0))


def asked(server: RedisProcess) -> int:
    found = cast(dict[str, dict[str, int]], server.client.info("commandstats"))
    return found.get("cmdstat_eval", {"calls": 0})["calls"]


async def test_a_request_is_one_round_trip_and_without_limits_none(ingresses: list[Ledger], redis_server: RedisProcess) -> None:
    before = asked(redis_server)
    for _ in range(5):
        assert await ingresses[0].enter(caller(), 100) is None
    assert asked(redis_server) == before
    for _ in range(5):
        assert is_in(await ingresses[0].enter(caller(requests_per_minute=100, tokens_per_minute=1000, concurrent_requests=9), 10))
    assert asked(redis_server) == before + 5


async def test_while_redis_is_away_all_are_answered_and_limits_hold_twice_over(dying_redis: RedisProcess, clock: Clock) -> None:
    mine = caller(requests_per_minute=10)
    ledgers = [Ledger(window_of(dying_redis, "dying", name), 2, clock) for name in ("a", "b")]
    before = [await ledgers[number % 2].enter(mine, 0) for number in range(6)]
    dying_redis.kill()
    after = [await ledgers[number % 2].enter(mine, 0) for number in range(40)]
    assert all(map(is_in, before))
    assert 10 <= sum(map(is_in, [*before, *after])) <= 20
    clock.now += 65
    again = [await ledgers[number % 2].enter(mine, 0) for number in range(40)]
    assert 10 <= sum(map(is_in, again)) <= 20
    for ledger in ledgers:
        await ledger.close()


async def test_what_others_had_used_is_remembered_while_redis_is_away(dying_redis: RedisProcess, clock: Clock) -> None:
    """A limit that is reached is not granted once more because nobody can be asked; who was under way elsewhere has ended in time."""
    mine = caller(requests_per_minute=10, tokens_per_minute=1000, concurrent_requests=9)
    ledgers = [Ledger(window_of(dying_redis, "remembered", name), 2, clock) for name in ("a", "b")]
    before = [await ledgers[number % 2].enter(mine, 10) for number in range(8)]
    dying_redis.kill()
    after = [await ledgers[0].enter(mine, 10) for _ in range(4)]
    assert [is_in(one) for one in [*before, *after]] == [True] * 10 + [False] * 2
    assert after[-1] is not None
    assert after[-1].standing.verdict is Verdict.CONCURRENT
    clock.now += 16
    later = [await ledgers[0].enter(mine, 10) for _ in range(4)]
    assert [is_in(one) for one in later] == [True] + [False] * 3
    assert later[-1] is not None
    assert later[-1].standing.verdict is Verdict.REQUESTS
    for ledger in ledgers:
        await ledger.close()


async def test_what_was_admitted_while_redis_hung_is_told_later(dying_redis: RedisProcess, clock: Clock) -> None:
    links = [RedisLink(dying_redis.url, PASSWORD, 2000, LinkCounters(), clock) for _ in range(2)]
    ledgers = [Ledger(SharedWindow(link, "hanging", str(number)), 2, clock) for number, link in enumerate(links)]
    mine = caller(requests_per_minute=10)
    assert is_in(await ledgers[0].enter(mine, 0))
    dying_redis.pause()
    assert is_in(await ledgers[0].enter(mine, 0))
    dying_redis.resume()
    assert is_in(await ledgers[0].enter(mine, 0))
    other = await ledgers[1].enter(mine, 0)
    assert other is not None
    # The one that hung may have been carried out later as well: then it counts twice, and never not at all.
    assert other.standing.remaining_requests in (5, 6)
    for ledger in ledgers:
        await ledger.close()


async def busy() -> None:
    """Other requests, for longer than Redis may take for a cached grammar."""
    ends = time.perf_counter() + 0.04
    while time.perf_counter() < ends:
        pass


async def test_ingresses_that_are_busy_count_together(redis_server: RedisProcess) -> None:
    redis = {"url": redis_server.url, "password": PASSWORD, "namespace": uuid4().hex}
    tree = {"redis": redis, "artifact_secret": "s" * 32, "http": {"num_replicas": 2}}
    ledgers = [open_ledger(parse_settings(tree)) for _ in range(2)]
    entered = []
    for number in range(8):
        admission, _ = await asyncio.gather(ledgers[number % 2].enter(caller(requests_per_minute=2), 0), busy())
        entered.append(is_in(admission))
    assert entered == [True] * 2 + [False] * 6
    for ledger in ledgers:
        await ledger.close()


async def test_without_redis_an_ingress_counts_alone(clock: Clock) -> None:
    ledger = Ledger(None, 1, clock)
    mine = caller(requests_per_minute=3, concurrent_requests=2, tokens_per_minute=100)
    first, second = await ledger.enter(mine, 40), await ledger.enter(mine, 40)
    assert is_in(first)
    assert is_in(second)
    third = await ledger.enter(mine, 10)
    assert third is not None
    assert third.standing.verdict is Verdict.CONCURRENT
    assert first is not None
    ledger.leave(first, 0)
    third = await ledger.enter(mine, 60)
    assert is_in(third)
    await ledger.close()


async def test_the_gate_answers_as_openai_does(ingresses: list[Ledger]) -> None:
    gate = Gate(ingresses[0], lambda _: 10, 2048)
    mine = caller(requests_per_minute=2, tokens_per_minute=200)
    body = {"messages": [], "max_tokens": 90}
    visit = await gate.enter(mine, Endpoint.CHAT, body)
    assert visit.headers["x-ratelimit-remaining-tokens"] == "100"
    visit.leave()
    visit.leave()
    again = await gate.enter(mine, Endpoint.CHAT, body)
    assert again.headers["x-ratelimit-remaining-tokens"] == "100"
    again.meter.asked()
    again.leave()
    with pytest.raises(ApiError) as caught:
        await gate.enter(mine, Endpoint.CHAT, body)
    assert (caught.value.status, caught.value.kind) == (429, "requests")
    assert int(caught.value.headers()["Retry-After"]) in range(60, 66)
    with pytest.raises(ApiError) as caught:
        await gate.enter(mine, Endpoint.CHAT, {"messages": [], "n": 3, "max_tokens": 90})
    assert (caught.value.status, caught.value.param) == (400, "max_tokens")
    free = await gate.enter(caller(), Endpoint.CHAT, {})
    assert free.headers == {}
    free.leave()


GAPS = st.integers(0, 30) | st.sampled_from([-40, -3600, 3600])
EVENTS = st.lists(st.tuples(GAPS, st.integers(0, 60), st.integers(0, 3)), max_size=25)
"""Seconds since the one before by a clock that may be set, tokens, and how many run at this ingress already."""


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVENTS, st.none() | st.integers(1, 3), st.none() | st.integers(1, 5), st.none() | st.integers(1, 100))
async def test_redis_decides_as_the_policy_does(
    redis_server: RedisProcess, events: list[tuple[int, int, int]], concurrent: int | None, requests: int | None, tokens: int | None
) -> None:
    window = window_of(redis_server, uuid4().hex, "one")
    limits = KeyLimits(concurrent_requests=concurrent, requests_per_minute=requests, tokens_per_minute=tokens)
    buckets: dict[int, Used] = {}
    now = 1_000_000.0
    for gap, cost, running in events:
        now += gap
        bucket, buckets = bucket_of(now), counted(buckets, now)
        wanted = decide(limits, running, buckets, cost, now)
        answer = await window.enter("me", limits, running + 1, cost, bucket, {})
        assert answer.verdict is wanted
        if wanted is Verdict.ADMITTED:
            buckets[bucket] = buckets.get(bucket, Used()) + Used(1, cost)
        assert {at: used for at, used in answer.buckets.items() if used != Used()} == buckets
    await window.close()
