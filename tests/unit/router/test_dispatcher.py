"""The parts of the policy together: what waits is released and counted, what is counted is forgotten."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched, Release
from router.parameters import Parameters
from router.replica_load import LoadReport
from tests.unit.router.clock import Clock
from tests.unit.router.dispatching import KEYED, arrive, dispatcher, full, home, released

USUAL = Parameters()
THREE = ("one", "two", "three")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_request_goes_to_the_first_rank_of_its_grammar() -> None:
    policy = dispatcher()
    first = home(policy)
    arrive(policy, Dispatched("one", "key", 10))
    assert policy.tick(5.0) == [Release(first, ("one",))]
    assert policy.next_tick() is None


def test_two_routers_that_know_the_same_rank_grammars_alike() -> None:
    assert dispatcher("abcd").ranks(KEYED, 4) == dispatcher("dcba").ranks(KEYED, 4)
    assert len(dispatcher().ranks(KEYED, 4)) == 4


def test_who_finds_no_seat_at_home_waits_for_it_while_others_are_as_busy() -> None:
    policy = full(20, "abcd")
    first = home(policy)
    arrive(policy, Dispatched("one", "key"))
    assert policy.tick(5.0) == []
    policy.gone(f"{first}0")
    assert policy.tick(5.001) == [Release(first, ("one",))]


def test_who_finds_no_seat_at_home_goes_elsewhere_when_others_are_idle() -> None:
    policy = full(4, "ab")
    keys = [key for number in range(40) if home(dispatcher("ab"), Dispatched("any", key := f"key {number}")) == "a"]
    arrive(policy, *(Dispatched(key, key) for key in keys[:4]))
    assert policy.tick(5.0) == []
    for number in range(4):
        policy.gone(f"b{number}")
    assert {release.replica for release in policy.tick(6.0)} == {"b"}


def test_who_waits_for_a_replica_that_has_gone_goes_at_once() -> None:
    policy = full(1, "abcd")
    first = home(policy)
    arrive(policy, Dispatched("one", "key"))
    assert policy.tick(5.0) == []
    policy.adopt(Fleet("abcd".replace(first, "e")))
    assert [release.replica for release in policy.tick(5.001)] == ["e"]


def test_who_waits_goes_at_once_to_a_replica_that_joins() -> None:
    policy = full(1, "ab")
    arrive(policy, Dispatched("one", "key"), Dispatched("unkeyed"))
    assert policy.tick(5.0) == []
    policy.adopt(Fleet("abcdef"))
    assert len(released(policy.tick(5.001))) == 2


def test_what_was_released_counts_at_once_and_until_it_is_gone() -> None:
    policy = dispatcher(floor=0.0)
    first = home(policy)
    arrive(policy, *(Dispatched(name, "key") for name in THREE))
    policy.tick(5.0)
    assert home(policy) != first
    for name in THREE:
        policy.gone(name)
    assert home(policy) == first


def test_what_was_released_counts_for_those_that_are_released_in_the_same_tick() -> None:
    policy = dispatcher(seats=2)
    arrive(policy, *(Dispatched(str(number), f"key {number}") for number in range(8)))
    assert Counter(release.replica for release in policy.tick(5.0)) == dict.fromkeys("abcd", 2)


def test_a_request_counts_where_it_was_sent_in_the_end() -> None:
    policy = dispatcher(floor=0.0)
    first, second, *_ = policy.ranks(KEYED, 4)
    policy.sent(Dispatched("one", "key"), first)
    assert home(policy) == second
    policy.sent(Dispatched("one", "key"), second)
    assert home(policy) == first
    assert len(policy) == 1


def test_what_finds_no_seat_waits_for_one_and_takes_its_group_along() -> None:
    policy = full(3)
    arrive(policy, Dispatched("old", "key"))
    arrive(policy, Dispatched("between", "another key"), at=5.001)
    arrive(policy, Dispatched("young", "key"), at=5.002)
    assert policy.tick(5.003) == []
    policy.gone("a0")
    policy.gone("a1")
    assert policy.tick(5.003) == [Release("a", ("old", "young"))]
    policy.gone("a2")
    assert policy.tick(5.003) == [Release("a", ("between",))]


def test_who_has_no_grammar_does_not_overtake_those_that_wait() -> None:
    policy = full(2)
    arrive(policy, Dispatched("old", "key"))
    arrive(policy, Dispatched("young"), at=5.001)
    assert policy.tick(5.002) == []
    policy.gone("a0")
    assert policy.tick(5.003) == [Release("a", ("old",))]
    policy.gone("a1")
    assert policy.tick(5.004) == [Release("a", ("young",))]


def test_who_has_no_grammar_takes_the_other_of_two_when_one_is_full() -> None:
    policy = full(2, "ab")
    policy.gone("b0")
    policy.sent(Dispatched("long", "other", 10_000), "b")
    policy.gone("b1")
    assert policy.ranks(Dispatched("any"), 2) == ("a", "b"), "more is to be prefilled at b"
    arrive(policy, Dispatched("one"))
    assert policy.tick(5.0) == [Release("b", ("one",))]


def test_without_a_grammar_prompts_that_begin_alike_meet() -> None:
    policy = dispatcher()
    assert len({policy.ranks(Dispatched("", prefix="one"), 1)[0] for _ in range(20)}) == 1
    assert len({policy.ranks(Dispatched("", prefix=str(number)), 1)[0] for number in range(40)}) == 4


@pytest.mark.parametrize("home_answers", [True, False])
def test_who_waits_for_long_leaves_a_replica_that_answers_nothing(clock: Clock, home_answers: bool) -> None:
    policy = full(20, "abcd", clock)
    first, second = policy.ranks(KEYED, 2)
    arrive(policy, Dispatched("one", "key"))
    assert policy.tick(5.0) == []
    clock.now += USUAL.patience_s
    if home_answers:
        policy.gone(f"{first}0")
        policy.sent(Dispatched(f"{first}0", "other"), first)
    policy.gone(f"{second}0")
    assert policy.tick(4.999 + USUAL.patience_s) == []
    releases = policy.tick(5.25 + USUAL.patience_s)
    assert releases == ([] if home_answers else [Release(second, ("one",))])


@pytest.mark.parametrize("set_by", [3600.0, -3600.0])
def test_who_waits_leaves_a_replica_that_answers_nothing_whatever_the_wall_clock_is_set_to(clock: Clock, set_by: float) -> None:
    steady = Clock()
    policy = full(20, "abcd", clock, steady=steady)
    for replica in "abcd":
        policy.gone(f"{replica}0")
        policy.sent(Dispatched(f"{replica}0", "other"), replica)
    _, second = policy.ranks(KEYED, 2)
    arrive(policy, Dispatched("one", "key"))
    clock.now += set_by
    policy.gone(f"{second}0")
    assert policy.tick(5.0) == []
    assert policy.tick(5.25 + USUAL.patience_s) == []  # it has answered a moment ago
    steady.now += USUAL.patience_s
    assert policy.tick(5.5 + USUAL.patience_s) == [Release(second, ("one",))]


def test_with_one_replica_that_answers_nothing_there_is_nowhere_to_go_until_the_longest_wait_ends(clock: Clock) -> None:
    policy = full(1, "a", clock)
    arrive(policy, Dispatched("one", "key"), Dispatched("unkeyed"))
    for waited in range(int(USUAL.longest_wait_s)):
        clock.now += 1.0
        assert policy.tick(5.0 + waited) == []
    assert released(policy.tick(5.0 + USUAL.longest_wait_s)) == [("one",), ("unkeyed",)]


def test_a_large_group_is_divided_over_the_first_ranks_by_what_a_step_prefills() -> None:
    policy = dispatcher(prefill_budget=1000)
    ranks = policy.ranks(KEYED, 4)
    arrive(policy, *(Dispatched(str(number), "key", 200) for number in range(12)))
    assert [(release.replica, len(release.requests)) for release in policy.tick(5.0)] == list(zip(ranks[:3], (5, 5, 2), strict=True))


def test_one_long_request_is_no_reason_for_another_home() -> None:
    policy = dispatcher(prefill_budget=100)
    for number in range(20):
        request = Dispatched("one", f"key {number}", 450)
        first = home(policy, request)
        arrive(policy, request)
        assert policy.tick(5.0) == [Release(first, ("one",))]
        policy.gone("one")


def test_what_a_step_prefills_is_what_engines_say(clock: Clock) -> None:
    policy = dispatcher(clock=clock, prefill_budget=100)
    policy.reported(LoadReport("a", clock.now - 1, 0, 0, step_tokens=1000))
    policy.reported(LoadReport("b", clock.now - 1, 0, 0))
    arrive(policy, *(Dispatched(str(number), "key", 100) for number in range(9)))
    assert [len(release.requests) for release in policy.tick(5.0)] == [9]


@pytest.mark.parametrize("others", [0, 500])
def test_a_router_with_a_small_share_sends_what_it_has(clock: Clock, others: int) -> None:
    policy = dispatcher("a", clock, prefill_budget=16)
    policy.reported(LoadReport("a", clock.now, others, 0))
    arrive(policy, Dispatched("one", "key", 10))
    assert released(policy.tick(5.0)) == [("one",)]


def test_of_the_seats_that_are_free_a_router_takes_its_share(clock: Clock) -> None:
    policy = dispatcher(clock=clock, seats=64)
    for replica in "abcd":
        policy.reported(LoadReport(replica, clock.now - 1, 48, 0))
    share = 1 / 49
    arrive(policy, *(Dispatched(str(number), "key") for number in range(40)))
    # 16 are free now, and of those that the others have, some will be before the next report.
    assert [len(requests) for requests in released(policy.tick(5.0))] == [math.ceil((16 + 64 * (1 - share)) * share)]


def test_a_report_that_tells_of_room_is_acted_upon_at_once(clock: Clock) -> None:
    policy = dispatcher("a", clock, seats=3)
    policy.reported(LoadReport("a", clock.now - 10, 9, 0))
    arrive(policy, Dispatched("waits", "key"))
    assert policy.tick(5.0) == []
    policy.reported(LoadReport("a", clock.now, 0, 0))
    assert released(policy.tick(5.0)) == [("waits",)]


def test_reports_of_other_routers_requests_move_keys_away(clock: Clock) -> None:
    policy = dispatcher(clock=clock)
    first = home(policy)
    for replica in "abcd":
        policy.reported(LoadReport(replica, clock.now, 60 if replica == first else 2, 0))
    assert home(policy) != first


def test_a_grammar_that_everybody_asks_for_is_spread_and_rare_ones_stay_at_home() -> None:
    policy, idle = dispatcher(), dispatcher()
    for number in range(400):
        key = "key" if number % 2 else f"rare {number}"
        policy.sent(Dispatched(str(number), key), home(policy, Dispatched("", key)))
    loads = policy._board.loads({}).load
    assert max(loads) <= 1.1 * sum(loads) / 4
    rare = [Dispatched("", f"rare {number}") for number in range(0, 400, 2)]
    assert [home(policy, request) for request in rare] == [home(idle, request) for request in rare]


def test_without_replicas_there_are_no_ranks_and_a_group_waits() -> None:
    policy = dispatcher("")
    assert policy.ranks(KEYED, 4) == policy.ranks(Dispatched("any"), 4) == ()
    arrive(policy, Dispatched("one", "key"), Dispatched("unkeyed"))
    assert policy.tick(5.0) == []
    assert policy.tick(99.0) == []
    policy.adopt(Fleet("a"))
    assert released(policy.tick(99.0)) == [("one",), ("unkeyed",)]


Step = Callable[[Dispatcher, str], object]
STEPS: dict[str, Step] = {
    "arrived": lambda policy, name: policy.arrived(Dispatched(name, f"key {len(name) % 2}", 400), 5.0),
    "unkeyed": lambda policy, name: policy.arrived(Dispatched(name, None, 400), 5.0),
    "sent": lambda policy, name: policy.sent(Dispatched(name, None, 7), "a"),
    "gone": lambda policy, name: policy.gone(name),
    "tick": lambda policy, name: policy.tick(5.0),
    "adopt": lambda policy, name: policy.adopt(Fleet("abcd"[: len(name)])),
    "reported": lambda policy, name: policy.reported(LoadReport("abc"[len(name) - 1], 999.0, 4, 9)),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["x", "yy", "zzz"])), max_size=30))
def test_nothing_is_left_of_requests_that_are_gone(steps: list[tuple[str, str]]) -> None:
    policy = dispatcher(prefill_budget=500, seats=2)
    for step, name in steps:
        STEPS[step](policy, name)
    for name in ("x", "yy", "zzz"):
        policy.gone(name)
    assert len(policy) == 0
    assert policy.next_tick() is None
    assert policy.tick(100.0) == []
    assert sum(replica.own for replica in policy._board._replicas.values()) == 0


def test_who_has_many_sequences_takes_their_seats_and_gives_them_back() -> None:
    policy = dispatcher("a", seats=8)
    arrive(policy, Dispatched("many", "key", sequences=8), Dispatched("one", "other"))
    assert released(policy.tick(5.0)) == [("many",)]
    policy.gone("many")
    assert released(policy.tick(5.001)) == [("one",)]
