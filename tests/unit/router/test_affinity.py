"""A grammar stays with its replica as long as that one is within its share; what has no grammar goes where there is room."""

from __future__ import annotations

import math
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from router.affinity import Affinity
from router.fleet import Fleet
from router.load import Loads
from router.parameters import Parameters

USUAL = Parameters()
TEN = Fleet(f"replica-{number}" for number in range(10))
LOADS = st.lists(st.floats(0, 1000), min_size=1, max_size=20)
KEYS = st.text("0123456789abcdef", min_size=8, max_size=8)


def affinity(parameters: Parameters = USUAL) -> Affinity:
    return Affinity(Random(1), parameters)


def ranks(fleet: Fleet, key: str) -> list[str]:
    return [fleet.ids[position] for position in np.argsort(fleet.scores(key))]


FIRST, SECOND, *OTHERS = ranks(TEN, "key")


def drawn(fleet: Fleet, load: list[float]) -> Loads:
    """Where every request weighs as much as any other."""
    return Loads(fleet, np.array(load, np.float64), np.array(load, np.float64), np.zeros(len(fleet)))


def usual(requests: float = 20.0, **others: float) -> Loads:
    """All of the ten have so many requests, but `first` and `second` perhaps others."""
    by_name = {"first": FIRST, "second": SECOND}
    loads = drawn(TEN, [requests] * 10)
    for name, load in others.items():
        at = TEN.positions[by_name[name]]
        loads.requests[at] = loads.load[at] = load
    return loads


def waiting(loads: Loads, requests: dict[str, float]) -> Loads:
    for replica, count in requests.items():
        loads.waiting[loads.fleet.positions[replica]] = count
    return loads


@settings(max_examples=60)
@given(LOADS, KEYS, st.floats(0, 1), st.integers(1, 20))
def test_the_best_ranks_within_the_bound_are_chosen(load: list[float], key: str, popularity: float, count: int) -> None:
    fleet = Fleet(f"{number:02}" for number in range(len(load)))
    share = max(USUAL.floor, (1 + (USUAL.bound - 1) * max(0.0, 1 - popularity * len(fleet))) * sum(load) / len(fleet))
    by_rank = [(replica, load[fleet.positions[replica]]) for replica in ranks(fleet, key)]
    chosen = affinity().choose(drawn(fleet, load), key, popularity, count)
    # But for rounding, somebody is never over the mean.
    within = [replica for replica, its in by_rank if its <= share * (1 + 1e-9)]
    surely = [replica for replica, its in by_rank if its <= share * (1 - 1e-9)]
    assert set(chosen) <= set(within) or not surely
    assert set(surely[:count]) <= set(chosen) or within != surely
    assert 1 <= len(chosen) <= count
    assert list(chosen) == [replica for replica, _ in by_rank if replica in chosen]


@settings(max_examples=40)
@given(KEYS, LOADS)
def test_without_a_bound_load_means_nothing(key: str, load: list[float]) -> None:
    fleet = Fleet(str(number) for number in range(len(load)))
    chosen = affinity(Parameters(bound=math.inf)).choose(drawn(fleet, load), key, ranks=4)
    assert chosen == tuple(ranks(fleet, key)[:4])


@settings(max_examples=60)
@given(KEYS, LOADS, st.floats(0, 1))
def test_the_best_rank_is_the_same_however_many_are_asked_for(key: str, load: list[float], popularity: float) -> None:
    fleet = Fleet(f"{number:02}" for number in range(len(load)))
    policy = affinity(Parameters(seats=300))
    assert policy.choose(drawn(fleet, load), key, popularity, 1) == policy.choose(drawn(fleet, load), key, popularity, 5)[:1]


def test_a_grammar_is_at_home_within_its_share_and_passes_home_over_above_it() -> None:
    # The bound is 25.6 and then 25.75: the load of the replica itself counts.
    assert affinity().choose(usual(first=25), "key") == (FIRST,)
    assert affinity().choose(usual(first=26), "key") == (SECOND,)
    assert affinity().choose(usual(first=60, second=60), "key") == (OTHERS[0],)


def test_a_replica_that_is_nearly_idle_keeps_its_grammars_however_idle_the_others_are() -> None:
    assert affinity().choose(usual(0, first=USUAL.floor), "key", popularity=1.0) == (FIRST,)
    assert affinity().choose(usual(0, first=USUAL.floor + 1), "key") == (SECOND,)


def test_what_is_to_be_prefilled_is_load_as_well() -> None:
    loads = usual()
    loads.load[TEN.positions[FIRST]] = 90
    assert affinity().choose(loads, "key") == (SECOND,)


def test_a_replica_whose_seats_are_taken_is_passed_over_while_others_have_some() -> None:
    policy = affinity(Parameters(seats=24))
    assert policy.choose(usual(first=23), "key") == (FIRST,)
    assert policy.choose(usual(first=24), "key") == (SECOND,)


def test_where_all_seats_are_taken_a_grammar_stays_within_the_slack() -> None:
    policy = affinity(Parameters(seats=20))
    assert policy.choose(usual(30, first=31, second=28), "key") == (FIRST,)
    assert policy.choose(usual(30, first=33, second=28), "key") == (SECOND,)
    assert affinity(Parameters(seats=20, slack=0.0)).choose(usual(30, first=31, second=28), "key") == (SECOND,)


def test_where_all_are_over_any_is_as_good_as_home() -> None:
    assert affinity(Parameters(seats=10, slack=0.0)).choose(usual(40), "key", ranks=99) == (FIRST, SECOND, *OTHERS)


def test_what_is_yet_to_be_prefilled_takes_no_seats() -> None:
    policy = affinity(Parameters(seats=22))
    loads = usual()
    loads.load[TEN.positions[FIRST]] = 24
    assert policy.choose(loads, "key") == (FIRST,)


def test_who_waits_for_the_others_will_take_the_room_that_they_seem_to_have() -> None:
    policy = affinity(Parameters(seats=20))
    assert policy.choose(usual(17, first=20), "key") == (SECOND,)
    assert policy.choose(waiting(usual(17, first=20), dict.fromkeys(OTHERS, 4)), "key") == (FIRST,)
    assert policy.choose(waiting(usual(17, first=20), {FIRST: 40}), "key") == (SECOND,), "who waits at home makes it no emptier"


def test_a_popular_grammar_leaves_a_busy_replica_before_a_rare_one_does() -> None:
    assert affinity().choose(usual(first=24), "key", popularity=0.01) == (FIRST,)
    assert affinity().choose(usual(first=24), "key", popularity=0.1) == (SECOND,)
    full = affinity(Parameters(seats=20))
    assert full.choose(usual(30, first=31, second=28), "key", popularity=0.01) == (FIRST,)
    assert full.choose(usual(30, first=31, second=28), "key", popularity=0.1) == (SECOND,)


def test_a_popular_grammar_stays_where_there_is_room() -> None:
    assert affinity().choose(usual(first=19), "key", popularity=0.9) == (FIRST,)
    assert affinity().choose(usual(0), "key", popularity=1.0) == (FIRST,)


def test_a_choice_names_as_many_ranks_as_it_is_asked_for() -> None:
    assert affinity().choose(usual(0), "key", ranks=7) == (FIRST, SECOND, *OTHERS[:5])
    assert len(affinity().choose(usual(0), "key", ranks=99)) == 10


def test_without_a_key_the_less_loaded_of_two_is_first() -> None:
    assert affinity().less_loaded(drawn(Fleet("ab"), [30.0, 20.0])) == ("b", "a")


def test_without_a_key_traffic_spreads_over_all() -> None:
    policy, loads = affinity(), usual(0)
    for _ in range(500):
        loads.load[TEN.positions[policy.less_loaded(loads)[0]]] += 1
    assert loads.load.max() - loads.load.min() < 10


def test_without_a_key_one_prompt_meets_its_prefix_cache_on_one_of_two_replicas() -> None:
    policy = affinity()
    assert set(policy.less_loaded(usual(), "key")) == {FIRST, SECOND}
    assert policy.less_loaded(usual(first=21), "key") == (SECOND, FIRST)
    assert policy.less_loaded(usual(second=21), "key") == (FIRST, SECOND)
    assert set(policy.less_loaded(usual(first=90), "key")) == {SECOND, OTHERS[0]}


def test_where_there_are_no_replicas_none_is_chosen() -> None:
    nobody = drawn(Fleet(), [])
    assert affinity().choose(nobody, "key") == affinity().less_loaded(nobody) == affinity().less_loaded(nobody, "prefix") == ()


def test_one_replica_takes_everything() -> None:
    only = drawn(Fleet(["only"]), [1e9])
    policy = affinity(Parameters(seats=4))
    assert policy.choose(only, "key", 1.0, 9) == policy.less_loaded(only) == policy.less_loaded(only, "prefix") == ("only",)


def test_loads_that_are_no_numbers_are_no_reason_to_fail() -> None:
    loads = usual(0)
    loads.load[3] = loads.requests[3] = np.nan
    assert affinity().choose(loads, "key") == (FIRST,)
    assert len(affinity().less_loaded(loads)) == 2
