"""Tenants' turns, as the dispatcher gives them."""

from __future__ import annotations

from collections import Counter

import pytest

from router.grouping import Dispatched
from router.parameters import Parameters
from router.replica_load import LoadReport
from tests.unit.router.clock import Clock
from tests.unit.router.dispatching import arrive, dispatcher, full, released

USUAL = Parameters()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def asked(
    tenant: str, *numbers: int, key: str | None = "key", tokens: int = 10, sequences: int = 1, weight: float = 1.0
) -> list[Dispatched]:
    return [Dispatched(f"{tenant}{number}", key, tokens, None, sequences, tenant, weight) for number in numbers]


def test_who_has_used_less_goes_before_who_has_waited_longer() -> None:
    policy = dispatcher("a", seats=2)
    arrive(policy, *asked("busy", *range(4)))
    assert released(policy.tick(5.0)) == [("busy0", "busy1")]
    arrive(policy, *asked("light", 0, 1, key=None), at=6.0)
    policy.shares.charge("busy", 100)
    policy.gone("busy0")
    assert released(policy.tick(6.0)) == [("light0",)]
    policy.gone("busy1")
    assert released(policy.tick(6.1)) == [("light1",)]
    policy.shares.charge("light", 1000)
    policy.gone("light0")
    assert released(policy.tick(6.2)) == [("busy2",)]


def test_tenants_do_not_wait_in_one_group_though_their_grammar_is_one() -> None:
    policy = dispatcher("a", seats=8)
    arrive(policy, *asked("one", 0, 1), *asked("two", 0, 1))
    assert sorted(released(policy.tick(5.0))) == [("one0", "one1"), ("two0", "two1")]


def test_a_turn_is_what_a_step_prefills_and_a_grammar_goes_together_within_it() -> None:
    policy = dispatcher("a", seats=64, prefill_budget=100)
    arrive(policy, *asked("one", *range(8), tokens=50), *asked("two", *range(8), tokens=50))
    order = [tuple(name[:3] for name in names) for names in released(policy.tick(5.0))]
    assert order == [("one",) * 2, ("two",) * 2] * 4


def test_tokens_go_to_tenants_by_their_weights() -> None:
    policy, served, number = dispatcher("ab", seats=16), Counter[str](), 0
    under_way, waiting = list[str](), Counter[str]()
    for step in range(600):
        for tenant, weight in (("x", 1.0), ("y", 2.0), ("z", 4.0)):
            while waiting[tenant] < 40:
                arrive(policy, *asked(tenant, number := number + 1, key=f"key {number % 5}", weight=weight), at=float(step))
                waiting[tenant] += 1
        for release in policy.tick(float(step)):
            under_way += release.requests
            for name in release.requests:
                waiting[name[0]] -= 1
                served[name[0]] += 1
        for name in under_way[:8]:
            policy.gone(name)
        del under_way[:8]
    total = served.total()
    assert {tenant: served[tenant] / total for tenant in "xyz"} == pytest.approx({"x": 1 / 7, "y": 2 / 7, "z": 4 / 7}, rel=0.1)


@pytest.mark.parametrize("sequences", [1, 14])
def test_the_last_eighth_of_the_seats_is_for_others_than_the_busiest(sequences: int) -> None:
    policy = dispatcher("a", seats=16)
    arrive(policy, *asked("light", 0))
    assert released(policy.tick(5.0)) == [("light0",)]
    arrive(policy, *asked("flood", *range(40), sequences=sequences), at=5.1)
    policy.tick(5.1)
    assert sum(request.sequences for request in policy._under_way.values()) <= 15
    arrive(policy, *asked("light", 1, key="other"), at=5.2)
    assert released(policy.tick(5.2)) == [("light1",)]


def test_a_flood_that_has_waited_for_long_waits_on_while_its_replica_answers(clock: Clock) -> None:
    """What has no seat would wait in the engine, ahead of other tenants."""
    policy = full(2, "a", clock)
    arrive(policy, *asked("flood", *range(9)))
    policy.tick(5.0)
    clock.now += USUAL.longest_wait_s
    policy.gone("a0")
    assert released(policy.tick(6.0 + USUAL.longest_wait_s)) == [("flood0",)]
    clock.now += 1
    policy.reported(LoadReport("a", clock.now, 2, 0, step_ms=12.0))
    clock.now += USUAL.patience_s - 1
    assert policy.tick(7.0 + USUAL.longest_wait_s) == []
