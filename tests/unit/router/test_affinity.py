"""A grammar stays with its replica as long as that one is within its share; what has no grammar goes where there is room."""

from __future__ import annotations

from math import sqrt
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from router.affinity import Affinity, Choice
from router.fleet import Fleet, Floats, Member
from router.parameters import Parameters

USUAL = Parameters()
TEN = Fleet(Member(f"replica-{number}") for number in range(10))
LOADS = st.lists(st.floats(0, 1000), min_size=1, max_size=20)
KEYS = st.text("0123456789abcdef", min_size=8, max_size=8)


def affinity(limits: Parameters | None = None) -> Affinity:
    return Affinity(Random(1), limits)


def idle(fleet: Fleet) -> Floats:
    return np.zeros(len(fleet))


def ranks(fleet: Fleet, key: str) -> list[str]:
    return [fleet.ids[position] for position in np.argsort(fleet.scores(key))]


def loaded(fleet: Fleet, loads: dict[str, float]) -> Floats:
    return np.array([loads.get(replica, 20.0) for replica in fleet.ids])


@settings(max_examples=40)
@given(LOADS, KEYS, st.lists(st.floats(0.1, 10), min_size=20, max_size=20))
def test_nobody_over_the_bound_is_chosen_and_the_best_rank_within_it_is(loads: list[float], key: str, weights: list[float]) -> None:
    fleet = Fleet(Member(f"{number:02}", weights[number]) for number in range(len(loads)))
    spread = np.array(loads)
    share = spread / fleet.weights
    mean = float(spread.sum() / fleet.weights.sum())
    bound = max(mean + max(USUAL.leeway * (USUAL.bound - 1) * mean, USUAL.deviations * sqrt(mean)), USUAL.floor)
    choice = affinity().choose(fleet, spread, key)
    better = ranks(fleet, key)[: choice.passed_over]
    assert all(share[fleet.positions[replica]] <= bound for replica in choice.replicas)
    assert all(share[fleet.positions[replica]] > bound for replica in better)
    assert ranks(fleet, key)[choice.passed_over] == choice.replicas[0]


@settings(max_examples=40)
@given(KEYS, LOADS)
def test_without_a_bound_load_means_nothing(key: str, loads: list[float]) -> None:
    fleet = Fleet(Member(str(number)) for number in range(len(loads)))
    choice = affinity(Parameters(bound=float("inf"))).choose(fleet, np.array(loads), key)
    assert choice.replicas == tuple(ranks(fleet, key)[:4])


def test_a_replica_over_its_share_is_passed_over_for_the_next_rank() -> None:
    first, second = ranks(TEN, "key")[:2]
    assert affinity().choose(TEN, loaded(TEN, {first: 90}), "key").replicas[0] == second
    assert affinity().choose(TEN, loaded(TEN, {first: 90}), "key").passed_over == 1
    assert affinity().choose(TEN, loaded(TEN, {first: 24}), "key").replicas[0] == first


def test_an_engine_that_is_nearly_idle_keeps_its_grammar_however_idle_the_others_are() -> None:
    first = ranks(TEN, "key")[0]
    loads = idle(TEN)
    loads[TEN.positions[first]] = USUAL.floor
    assert affinity().choose(TEN, loads, "key").replicas[0] == first


@settings(max_examples=60)
@given(KEYS, LOADS, st.floats(0, 1), st.lists(st.floats(0.1, 10), min_size=20, max_size=20))
def test_the_best_rank_is_the_same_however_many_are_asked_for(
    key: str, loads: list[float], popularity: float, weights: list[float]
) -> None:
    fleet = Fleet(Member(f"{number:02}", weights[number]) for number in range(len(loads)))
    limits = Parameters(seats=300)
    one = affinity(limits).choose(fleet, np.array(loads), key, ranks=1, popularity=popularity)
    assert one.replicas == affinity(limits).choose(fleet, np.array(loads), key, popularity=popularity).replicas[:1]


def test_a_few_requests_more_than_the_mean_are_chance() -> None:
    first, second = ranks(TEN, "key")[:2]
    mean = np.full(10, 9.0)
    by_chance, too_many = mean.copy(), mean.copy()
    by_chance[TEN.positions[first]], too_many[TEN.positions[first]] = 15, 17
    assert affinity().choose(TEN, by_chance, "key").replicas[0] == first
    assert affinity().choose(TEN, too_many, "key").replicas[0] == second


def test_a_replica_whose_seats_are_taken_is_passed_over_while_others_have_some() -> None:
    limits = Parameters(seats=22)
    first, second = ranks(TEN, "key")[:2]
    assert affinity(limits).choose(TEN, loaded(TEN, {first: 21}), "key").replicas[0] == first
    assert affinity(limits).choose(TEN, loaded(TEN, {first: 22}), "key").replicas[0] == second
    full = loaded(TEN, dict.fromkeys(TEN.ids, 40.0))
    assert affinity(limits).choose(TEN, full, "key").replicas[0] == first


def test_a_popular_grammar_leaves_a_busy_replica_before_a_rare_one_does() -> None:
    first, second = ranks(TEN, "key")[:2]
    busy = loaded(TEN, {first: 24})
    assert affinity().choose(TEN, busy, "key", popularity=0.01).replicas[0] == first
    assert affinity().choose(TEN, busy, "key", popularity=0.1).replicas[0] == second
    assert affinity(Parameters(hot=float("inf"))).choose(TEN, busy, "key", popularity=0.1).replicas[0] == first


def test_a_popular_grammar_stays_where_there_is_room() -> None:
    first = ranks(TEN, "key")[0]
    assert affinity().choose(TEN, loaded(TEN, {first: 19}), "key", popularity=0.9).replicas[0] == first
    assert affinity().choose(TEN, idle(TEN), "key", popularity=1.0).replicas[0] == first


def test_where_all_seats_are_taken_a_rare_grammar_stays_with_its_replica() -> None:
    limits, first = Parameters(seats=10), ranks(TEN, "key")[0]
    assert affinity(limits).choose(TEN, loaded(TEN, {first: 21}), "key").replicas[0] == first


def test_who_waits_for_the_others_will_take_the_seats_that_they_seem_to_have() -> None:
    limits, first = Parameters(seats=20), ranks(TEN, "key")[0]
    requests = np.full(10, 17.0)
    requests[TEN.positions[first]] = 20
    for_the_others, for_the_first = np.full(10, 4.0), np.zeros(10)
    for_the_others[TEN.positions[first]], for_the_first[TEN.positions[first]] = 0, 40
    assert affinity(limits).choose(TEN, requests, "key").replicas[0] != first
    assert affinity(limits).choose(TEN, requests, "key", waiting=for_the_others).replicas[0] == first
    assert affinity(limits).choose(TEN, requests, "key", waiting=for_the_first).replicas[0] != first


def test_what_is_yet_to_be_prefilled_takes_no_seats() -> None:
    limits, first = Parameters(seats=22), ranks(TEN, "key")[0]
    loads = loaded(TEN, {first: 24})
    assert affinity(limits).choose(TEN, loads, "key").replicas[0] != first
    assert affinity(limits).choose(TEN, loads, "key", requests=loaded(TEN, {first: 21})).replicas[0] == first


def test_a_choice_names_as_many_ranks_as_it_is_asked_for() -> None:
    assert affinity().choose(TEN, idle(TEN), "key", ranks=7).replicas == tuple(ranks(TEN, "key")[:7])
    assert len(affinity().choose(TEN, idle(TEN), "key", ranks=99).replicas) == 10


def test_what_a_hot_grammar_spills_is_kept_together_by_its_prefix() -> None:
    first, *others = ranks(TEN, "key")
    loads = loaded(TEN, {first: 200})
    chosen = {prefix: affinity().choose(TEN, loads, "key", prefix, popularity=0.2).replicas[0] for prefix in map(str, range(40))}
    assert set(chosen.values()) == set(others[:2])
    assert chosen == {prefix: affinity().choose(TEN, loads, "key", prefix, popularity=0.2).replicas[0] for prefix in chosen}


def test_what_a_rare_grammar_spills_goes_to_one_replica_whatever_its_prefix() -> None:
    first, second = ranks(TEN, "key")[:2]
    loads = loaded(TEN, {first: 200})
    assert {affinity().choose(TEN, loads, "key", prefix).replicas[0] for prefix in map(str, range(40))} == {second}


def test_a_prefix_does_not_take_a_grammar_away_from_its_replica() -> None:
    first = ranks(TEN, "key")[0]
    assert all(affinity().choose(TEN, idle(TEN), "key", str(prefix)).replicas[0] == first for prefix in range(20))


def test_without_a_key_the_less_loaded_of_two_is_taken() -> None:
    two = Fleet([Member("a"), Member("b")])
    assert affinity().choose(two, np.array([30.0, 20.0]), None).replicas == ("b", "a")


def test_without_a_key_a_larger_replica_takes_more() -> None:
    two = Fleet([Member("large", 4), Member("small", 1)])
    assert affinity().choose(two, np.array([30.0, 20.0]), None).replicas == ("large", "small")


def test_without_a_key_traffic_spreads_over_all() -> None:
    policy, loads = affinity(), idle(TEN)
    for _ in range(500):
        loads[TEN.positions[policy.choose(TEN, loads, None).replicas[0]]] += 1
    assert loads.max() - loads.min() < 10


def test_without_a_key_one_prompt_meets_its_prefix_cache_on_one_of_two_replicas() -> None:
    policy, best = affinity(), set(ranks(TEN, "system prompt")[:2])
    busy = [loaded(TEN, {replica: 24.0}) for replica in TEN.ids]
    assert {policy.choose(TEN, loads, None, "system prompt").replicas[0] for loads in busy} <= best


def test_where_there_are_no_replicas_none_is_chosen() -> None:
    assert affinity().choose(Fleet(), idle(Fleet()), "key") == Choice(())
    assert affinity().choose(Fleet(), idle(Fleet()), None) == Choice(())


def test_one_replica_takes_everything() -> None:
    one = Fleet([Member("only")])
    assert affinity().choose(one, np.array([1e9]), "key").replicas == ("only",)
    assert affinity().choose(one, np.array([1e9]), None).replicas == ("only",)


def test_loads_that_are_no_numbers_are_no_reason_to_fail() -> None:
    loads = idle(TEN)
    loads[3] = np.nan
    assert affinity().choose(TEN, loads, "key").replicas[0] == ranks(TEN, "key")[0]
    assert len(affinity().choose(TEN, loads, None).replicas) == 2
