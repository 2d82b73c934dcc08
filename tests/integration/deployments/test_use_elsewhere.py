"""Turns by what tenants use at all ingresses, heard through a real Redis, and at each alone while it is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
import pytest_asyncio
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from deployments.access.presence_elsewhere import FRESH_S, GONE_S, MOST_BYTES, MOST_INGRESSES, PresenceElsewhere
from deployments.access.use_elsewhere import UseElsewhere
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched
from router.parameters import Parameters
from router.replica_load import LoadReport
from router.turns.seat_line import Guest, SeatLine
from router.turns.shares import Presence
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process
from tests.unit.router.clock import Clock

pytestmark = pytest.mark.asyncio
PATIENT_MS = 10_000
SEATS, STEPS, EXCHANGED = 4, 600, 20
ENGINE_SEATS = 16


def use_at(server: RedisProcess, namespace: str, patience_ms: int = PATIENT_MS) -> UseElsewhere:
    return UseElsewhere(RedisLink(server.url, PASSWORD, patience_ms, LinkCounters()), namespace)


@pytest_asyncio.fixture
async def ingresses(redis_server: RedisProcess) -> AsyncIterator[list[UseElsewhere]]:
    namespace = uuid4().hex
    made = [use_at(redis_server, namespace) for _ in range(2)]
    yield made
    for one in made:
        await one.close()


@pytest.fixture
def dying_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as process:
        yield process


async def used(one: UseElsewhere, tokens: dict[str, float]) -> None:
    for tenant, number in tokens.items():
        one.used(tenant, number)
    await one.exchange()


async def test_each_hears_what_the_other_has_seen(ingresses: list[UseElsewhere]) -> None:
    first, second = ingresses
    await used(first, {"ada": 100})
    await used(second, {"ada": 10, "omar": 5})
    assert second.take("ada") == 0  # it counts from when it first asked
    await used(first, {"ada": 50})
    assert first.take("ada") == 10
    assert first.take("ada") == 0
    await used(second, {"ada": -3, "omar": 1})
    assert (second.take("ada"), second.take("omar")) == (50, 0)
    await used(first, {"ada": 1})
    assert first.take("ada") == 0  # an estimate was too high


async def test_it_is_told_by_itself(ingresses: list[UseElsewhere]) -> None:
    first, second = ingresses
    for one in (second, first):
        await used(one, {"ada": 1})
    first.used("ada", 20)
    await first.close()
    await used(second, {"ada": 1})
    assert second.take("ada") == 21


class _Ingress:
    """Everybody asks for more than there is, and each request is one step long. `elsewhere` None: nothing is heard."""

    def __init__(self, tenants: str, elsewhere: UseElsewhere | None) -> None:
        self._line, self._elsewhere = SeatLine(SEATS), elsewhere
        self._seated: list[Guest] = []
        self._now = 0.0
        self.answered: Counter[str] = Counter()
        for tenant in tenants:
            for _ in range(2 * SEATS):
                self._arrive(Guest(tenant))

    def _arrive(self, guest: Guest) -> None:
        if self._elsewhere is not None:
            self._line.shares.charge(guest.tenant, self._elsewhere.take(guest.tenant))
        self._line.arrived(guest, self._now)

    def step(self) -> None:
        self._now += 0.1
        for guest in self._seated:
            self._line.gone(guest, self._now)
            self._arrive(Guest(guest.tenant))
        self._seated = self._line.turn(self._now)
        for guest in self._seated:
            self.answered[guest.tenant] += 1
            self._line.shares.charge(guest.tenant, 1)
            if self._elsewhere is not None:
                self._elsewhere.used(guest.tenant, 1)


async def _answered(uses: list[UseElsewhere] | list[None]) -> Counter[str]:
    """Of a tenant at both ingresses, and two at one each."""
    made = [_Ingress(tenants, use) for tenants, use in zip(("ab", "ac"), uses, strict=True)]
    for number in range(STEPS):
        for one in made:
            one.step()
        if number % EXCHANGED == 0:
            for use in uses:
                if use is not None:
                    await use.exchange()
    return made[0].answered + made[1].answered


async def test_a_tenant_at_every_ingress_has_one_share(ingresses: list[UseElsewhere]) -> None:
    together = await _answered(ingresses)
    each = 2 * SEATS * STEPS / 3
    assert all(abs(together[tenant] - each) < 0.15 * each for tenant in "abc"), together
    alone = await _answered([None, None])
    assert alone["a"] > 1.9 * alone["b"]


class _Routed:
    """An ingress's router in front of an engine that others call, too. Each of its tenants always has requests waiting."""

    def __init__(self, engine: list[tuple[_Routed, str]], clock: Clock, elsewhere: UseElsewhere, tenants: dict[str, float]) -> None:
        self.policy = Dispatcher(Random(5), clock, Parameters(seats=ENGINE_SEATS))
        self.policy.adopt(Fleet(["a"]))
        elsewhere.meet(self.policy)
        self.answered: Counter[str] = Counter()
        self.tenants = tenants
        self.waiting: Counter[str] = Counter()
        self._engine, self._clock, self._numbers = engine, clock, count()

    def step(self, each: int) -> None:
        for tenant, weight in self.tenants.items():
            while self.waiting[tenant] < each:
                self.arrive(tenant, weight)
        for release in self.policy.tick(self._clock.now):
            for name in release.requests:
                self._engine.append((self, name))
                self.waiting[name.partition(" ")[0]] -= 1

    def arrive(self, tenant: str, weight: float = 1.0) -> None:
        self.policy.arrived(Dispatched(f"{tenant} {next(self._numbers)}", None, 1, tenant=tenant, weight=weight), self._clock.now)
        self.waiting[tenant] += 1

    def ended(self, name: str) -> None:
        self.answered[name.partition(" ")[0]] += 1
        self.policy.gone(name)

    def held(self, tenant: str) -> int:
        return sum(1 for router, name in self._engine[:ENGINE_SEATS] if router is self and name.startswith(tenant))


async def _run(routers: list[_Routed], uses: list[UseElsewhere], engine: list[tuple[_Routed, str]], clock: Clock, seconds: int) -> None:
    """Each tenth of a second ends one of the answers; engines report each second, and ingresses exchange twice."""
    for tenth in range(seconds * 10):
        clock.now += 0.1
        if engine:
            router, name = engine.pop(0)
            router.ended(name)
        if tenth % 10 == 0:
            for each in routers:
                each.policy.reported(LoadReport("a", clock.now, len(engine), 0, step_ms=10.0))
        if tenth % 5 == 0:
            for use in uses:
                await use.exchange()
        for each in routers:
            each.step(2 * ENGINE_SEATS)


async def test_tenants_that_meet_at_no_ingress_have_their_shares(ingresses: list[UseElsewhere]) -> None:
    engine: list[tuple[_Routed, str]] = []
    clock = Clock()
    made = [
        _Routed(engine, clock, use, {tenant: weight}) for use, (tenant, weight) in zip(ingresses, (("a", 1.0), ("b", 3.0)), strict=True)
    ]
    await _run(made, ingresses, engine, clock, 20)  # until they have met
    for one in made:
        one.answered.clear()
    await _run(made, ingresses, engine, clock, 60)
    answered = made[0].answered + made[1].answered
    assert answered.total() == 600, "no seat stands empty"
    assert answered["b"] / answered.total() == pytest.approx(3 / 4, rel=0.15)
    made[1].tenants = {}
    await _run(made, ingresses, engine, clock, 30)
    assert made[0].held("a") == ENGINE_SEATS, "who is alone has everything"


async def test_a_flood_keeps_seats_for_light_tenants_of_another_ingress(ingresses: list[UseElsewhere]) -> None:
    engine: list[tuple[_Routed, str]] = []
    clock = Clock()
    flood, light = (_Routed(engine, clock, use, tenants) for use, tenants in zip(ingresses, ({"flood": 1.0}, {}), strict=True))
    await _run([flood, light], ingresses, engine, clock, 10)
    assert len(engine) >= ENGINE_SEATS
    for _ in range(20):
        light.arrive("light")
        await _run([flood, light], ingresses, engine, clock, 2)
    assert len(engine) <= ENGINE_SEATS - 1
    assert light.answered["light"] >= 18


async def test_an_ingress_that_has_ended_is_not_waited_for(redis_server: RedisProcess) -> None:
    clock = Clock()
    first, second = PresenceElsewhere(key := uuid4().hex, clock), PresenceElsewhere(key, clock)
    here = {"ada": Presence(2.0, 3, 4)}

    async def exchanged(one: PresenceElsewhere, tenants: dict[str, Presence]) -> dict[str, Presence]:
        async with Redis.from_url(redis_server.url, password=PASSWORD) as redis, redis.pipeline() as calls:
            one.tell(calls, tenants)
            return one.of_others((await calls.execute())[-1])

    assert await exchanged(first, here) == {}
    assert await exchanged(second, {}) == here
    clock.now += FRESH_S
    assert await exchanged(second, {}) == {}
    assert await exchanged(first, here) == {}
    assert await exchanged(second, {}) == here
    clock.now += GONE_S
    await exchanged(second, {})
    assert await exchanged(first, {}) == {}
    async with Redis.from_url(redis_server.url, password=PASSWORD) as redis:
        await redis.hset(key, "another", b"no JSON")
        await redis.hset(key, "large", b"[1, {" + b" " * MOST_BYTES + b"}]")
    assert await exchanged(second, {}) == {}
    assert await exchanged(first, here) == {}
    assert await exchanged(second, {}) == here
    async with Redis.from_url(redis_server.url, password=PASSWORD) as redis:
        await redis.hset(key, mapping={str(number): b"" for number in range(MOST_INGRESSES)})
    with pytest.raises(ResponseError):
        await exchanged(second, {})


async def test_without_redis_shares_are_each_ingress_own(dying_redis: RedisProcess) -> None:
    namespace = uuid4().hex
    uses = [use_at(dying_redis, namespace, patience_ms=200) for _ in range(2)]
    for use in uses:
        await used(use, {"a": 1})
    dying_redis.kill()
    answered = await _answered(uses)
    assert sum(answered.values()) == pytest.approx(2 * SEATS * STEPS, rel=0.01)
    assert [use.take("a") for use in uses] == [0, 0]
    for use in uses:
        await use.close()
