"""Turns by what tenants use at all ingresses, heard through a real Redis, and at each alone while it is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from deployments.access.use_elsewhere import UseElsewhere
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from router.turns.seat_line import Guest, SeatLine
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process

pytestmark = pytest.mark.asyncio
PATIENT_MS = 10_000
SEATS, STEPS, EXCHANGED = 4, 600, 20


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
