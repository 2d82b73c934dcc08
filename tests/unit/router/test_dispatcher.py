"""The parts of the policy together: what waits is released and counted, what is counted is forgotten."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.dispatcher import Dispatched, Dispatcher
from router.fleet import Fleet, Member
from router.grouping import Release
from router.load import LoadReport
from router.parameters import Parameters

WALL = 1000.0
USUAL = Parameters()
KEYED = Dispatched("any", "key")
THREE = ("one", "two", "three")


def fleet(replicas: str) -> Fleet:
    return Fleet(map(Member, replicas))


def dispatcher(replicas: str = "abcd", budget: int = 1000, **parameters: Any) -> Dispatcher:
    made = Dispatcher(Random(5), lambda: WALL, Parameters(prefill_budget=budget, **parameters))
    made.adopt(fleet(replicas))
    return made


def test_a_request_goes_to_the_first_rank_of_its_grammar() -> None:
    policy = dispatcher()
    policy.arrived(Dispatched("one", "key", 10), 5.0)
    (release,) = policy.tick(5.0)
    assert (release.replica, release.requests) == (policy.ranks(KEYED)[0], ("one",))
    assert policy.next_tick() is None


def test_a_rare_grammar_waits_for_room_at_home_where_a_popular_one_goes_elsewhere() -> None:
    policy = dispatcher(budget=100, floor=1000.0)
    home = {key: policy.ranks(Dispatched("any", key))[0] for key in ("rare", "hot")}
    for number in range(100):
        policy.sent(Dispatched(f"hot {number}", "hot", 0), home["hot"])
    for replica in set(home.values()):
        policy.sent(Dispatched(f"long at {replica}", "", 100 * (int(USUAL.queued_steps) + 1)), replica)
    for key in home:
        policy.arrived(Dispatched(key, key, 10), 5.0)
    (release,) = policy.tick(5.0)
    assert release.key == "hot"
    assert release.replica not in home.values()
    (release,) = policy.tick(5.0 + USUAL.patience_s)
    assert (release.key, release.replica) == ("rare", home["rare"])


def test_who_waits_for_a_replica_that_has_gone_goes_at_once() -> None:
    policy = dispatcher(seats=1)
    home = policy.ranks(KEYED)[0]
    for replica in "abcd":
        policy.sent(Dispatched(f"long at {replica}", "other"), replica)
    policy.arrived(Dispatched("one", "key"), 5.0)
    assert policy.tick(5.0) == []
    policy.adopt(fleet("abcd".replace(home, "e")))
    assert [release.replica for release in policy.tick(5.001)] == ["e"]


@pytest.mark.parametrize("others", [0, 500])
def test_a_router_with_a_small_share_has_room_for_some_tokens(others: int) -> None:
    policy = dispatcher("a", budget=16)
    policy.reported(LoadReport("a", WALL, running=others, waiting=0, outstanding_prefill_tokens=0))
    policy.arrived(Dispatched("one", "key", 10), 5.0)
    assert [release.requests for release in policy.tick(5.0)] == [("one",)]


@pytest.mark.parametrize("home_answers", [True, False])
def test_who_waits_for_long_leaves_a_replica_that_answers_nothing(home_answers: bool) -> None:
    now = WALL
    policy = Dispatcher(Random(5), lambda: now, Parameters(seats=2, floor=1000.0))
    policy.adopt(fleet("abcd"))
    home = policy.ranks(KEYED)[0]
    for replica in "abcd":
        for number in range(2):
            policy.sent(Dispatched(f"{replica} {number}", "other"), replica)
    policy.arrived(Dispatched("one", "key"), 5.0)
    for number in range(40):  # so many wait for the other replicas that leaving home would gain nothing
        policy.arrived(Dispatched(str(number), f"key {number}"), 5.001)
    assert policy.tick(5.01) == []
    now += USUAL.silent_s
    for replica in "abcd" if home_answers else "abcd".replace(home, ""):
        policy.gone(f"{replica} 0")
        policy.sent(Dispatched(f"{replica} 0", "other"), replica)
    policy.gone(f"{'a' if home != 'a' else 'b'} 0")
    releases = policy.tick(5.0 + USUAL.patience_s)
    assert ("one" in releases[0].requests) is not home_answers


def test_what_was_released_counts_at_once() -> None:
    policy = dispatcher(floor=0.0)
    first = policy.ranks(KEYED)[0]
    for name in THREE:
        policy.arrived(Dispatched(name, "key"), 5.0)
    policy.tick(5.0 + USUAL.window_s)
    assert policy.ranks(KEYED)[0] != first
    for name in THREE:
        policy.gone(name)
    assert policy.ranks(KEYED)[0] == first


def test_what_was_released_counts_for_those_that_are_released_in_the_same_tick() -> None:
    policy = dispatcher(seats=2)
    names = [str(number) for number in range(8)]
    for name in names:
        policy.arrived(Dispatched(name, f"key {name}"), 5.0)
    assert sorted(release.replica for release in policy.tick(5.0)) == sorted("abcd" * 2)


def test_what_finds_no_seat_waits_for_one_and_takes_its_group_along() -> None:
    policy = dispatcher("a", seats=3)
    for name in THREE:
        policy.sent(Dispatched(name, "other"), "a")
    policy.arrived(Dispatched("old", "key"), 5.0)
    policy.arrived(Dispatched("between", "another key"), 5.001)
    policy.arrived(Dispatched("young", "key"), 5.002)
    assert policy.tick(5.0 + USUAL.window_s) == []
    for name in THREE[:2]:
        policy.gone(name)
    assert policy.tick(5.003) == [Release("a", "key", ("old", "young"))]
    policy.gone(THREE[2])
    assert policy.tick(5.003) == [Release("a", "another key", ("between",))]


def full(seats: int, free: int = 0) -> Dispatcher:
    policy = dispatcher("a", seats=seats)
    for number in range(seats - free):
        policy.sent(Dispatched(str(number), "other"), "a")
    return policy


def test_a_group_waits_until_it_fits_or_a_quarter_of_all_seats_is_free() -> None:
    policy, kept = full(64), int(64 * USUAL.kept_free)
    for number in range(2 * kept):
        policy.arrived(Dispatched(f"waits {number}", "key"), 5.0)
    assert policy.tick(5.01) == []
    for number in range(kept - 1):
        policy.gone(str(number))
        assert policy.tick(5.02) == []
    policy.gone(str(kept))
    (release,) = policy.tick(5.02)
    assert len(release.requests) == kept


def test_a_small_group_waits_for_no_more_seats_than_it_needs() -> None:
    policy = full(64, free=1)
    for name in THREE[:2]:
        policy.arrived(Dispatched(name, "key"), 5.0)
    assert policy.tick(5.01) == []
    policy.gone("0")
    assert [release.requests for release in policy.tick(5.02)] == [THREE[:2]]


def test_who_has_no_grammar_does_not_overtake_those_that_wait() -> None:
    policy = full(2)
    policy.arrived(Dispatched("old", "key"), 5.0)
    policy.arrived(Dispatched("young"), 5.001)
    assert policy.tick(5.002) == []
    policy.gone("0")
    assert [release.requests for release in policy.tick(5.003)] == [("old",)]
    policy.gone("1")
    assert [(release.replica, release.requests) for release in policy.tick(5.004)] == [("a", ("young",))]


def test_a_router_with_a_small_share_of_the_traffic_finds_the_seats_that_are_free() -> None:
    policy = dispatcher(seats=64)
    for replica in "abcd":
        policy.reported(LoadReport(replica, WALL - 1, 48, 0, 0))
    for number in range(40):
        policy.arrived(Dispatched(str(number), f"key {number}"), 5.0)
    share = policy._board.share()
    assert len(policy.tick(5.0)) == 4 * math.ceil((16 + 64 * (1 - share)) * share)
    assert len(policy.tick(5.02)) > 0


def test_what_waits_for_a_full_replica_goes_elsewhere_when_others_are_idle() -> None:
    policy = dispatcher("ab", seats=4)
    keys = [f"key {number}" for number in range(40)]
    home = {key: policy.ranks(Dispatched("any", key))[0] for key in keys}
    for replica in "ab":
        for number in range(4):
            policy.sent(Dispatched(f"{replica} {number}"), replica)
    for key in keys:
        if home[key] == "a":
            policy.arrived(Dispatched(key, key), 5.0)
    assert policy.tick(5.0) == []
    for number in range(4):
        policy.gone(f"b {number}")
    assert {release.replica for release in policy.tick(6.0)} == {"b"}


def test_one_long_request_of_a_rare_grammar_is_no_reason_for_another_home() -> None:
    policy = dispatcher(budget=100)
    for number in range(20):
        request = Dispatched("one", f"key {number}", 450, f"prefix {number}")
        home = policy.ranks(request)[0]
        policy.arrived(request, 5.0)
        assert [release.replica for release in policy.tick(5.0)] == [home]
        policy.gone("one")


def test_who_waits_alone_takes_any_seat() -> None:
    policy = full(64, free=1)
    policy.arrived(Dispatched("alone", "key"), 5.0)
    assert policy.tick(5.0) == [Release("a", "key", ("alone",))]


def test_what_a_step_prefills_is_what_engines_say() -> None:
    policy = dispatcher("a", budget=100)
    policy.reported(LoadReport("a", WALL - 1, 0, 0, 0, step_tokens=1000))
    for number in range(9):
        policy.arrived(Dispatched(str(number), "key", 100), 5.0)
    assert [len(release.requests) for release in policy.tick(5.0 + USUAL.window_s)] == [9]


def test_a_report_that_tells_of_room_is_acted_upon_at_once() -> None:
    policy = dispatcher("a", seats=3)
    policy.reported(LoadReport("a", WALL - 10, 9, 0, 0))
    policy.arrived(Dispatched("waits", "key"), 5.0)
    assert policy.tick(5.0) == []
    policy.reported(LoadReport("a", WALL, 0, 0, 0))
    assert [release.requests for release in policy.tick(5.0)] == [("waits",)]


def test_a_request_counts_where_it_was_sent_in_the_end() -> None:
    policy = dispatcher(floor=0.0)
    first, second, *_ = policy.ranks(KEYED)
    for name in THREE:
        policy.arrived(Dispatched(name, "key"), 5.0)
    policy.tick(5.0 + USUAL.window_s)
    assert policy.ranks(KEYED)[0] != first
    policy.sent(Dispatched("one", "key"), second)
    assert policy.ranks(KEYED)[0] == first


def test_a_grammar_that_everybody_asks_for_is_spread_sooner_than_the_others() -> None:
    policy = dispatcher(floor=0.0)
    for number in range(400):
        key = "key" if number % 2 else f"rare {number}"
        policy.sent(Dispatched(str(number), key), policy.ranks(Dispatched("", key))[0])
    loads = policy._board.loads()
    assert max(loads) <= 1.1 * sum(loads) / 4
    rare = [policy.ranks(Dispatched("", f"rare {number}")) for number in range(0, 400, 2)]
    assert rare == [dispatcher().ranks(Dispatched("", f"rare {number}")) for number in range(0, 400, 2)]


def test_prompts_that_begin_alike_share_a_replica_where_a_grammar_has_several() -> None:
    policy = dispatcher(budget=1000)
    for number in range(12):
        policy.arrived(Dispatched(str(number), "key", 200, f"prefix {number // 2 % 3}"), 5.0)
    sent = {name: release.replica for release in policy.tick(5.0) for name in release.requests}
    homes = {(int(name) // 2 % 3, replica) for name, replica in sent.items()}
    assert len(sent) == 12
    assert len(set(sent.values())) == 3
    assert len(homes) < 9


def test_without_a_grammar_prompts_that_begin_alike_meet() -> None:
    policy = dispatcher()
    alike = {policy.ranks(Dispatched("", prefix="one"))[0] for _ in range(20)}
    assert len(alike) == 1
    assert len({policy.ranks(Dispatched("", prefix=str(number)))[0] for number in range(40)}) == 4


def test_a_replica_that_failed_is_passed_over_unless_it_is_the_only_one() -> None:
    policy = dispatcher()
    first = policy.ranks(KEYED)[0]
    assert first not in policy.ranks(KEYED, avoid=first)
    assert set(policy.ranks(KEYED, avoid=first)) == set("abcd") - {first}
    assert dispatcher("a").ranks(KEYED, avoid="a") == ("a",)
    assert all("a" not in dispatcher("ab").ranks(Dispatched("any"), avoid="a") for _ in range(10))


def test_without_replicas_there_are_no_ranks_and_a_group_waits() -> None:
    policy = dispatcher("")
    assert policy.ranks(KEYED) == ()
    policy.arrived(Dispatched("one", "key"), 5.0)
    assert policy.tick(5.0) == []
    policy.adopt(fleet("a"))
    again = policy.next_tick()
    assert again is not None
    assert [release.replica for release in policy.tick(again)] == ["a"]


def test_reports_of_other_routers_requests_move_keys_away() -> None:
    policy = dispatcher()
    first = policy.ranks(KEYED)[0]
    for replica in "abcd":
        policy.reported(LoadReport(replica, WALL, 60 if replica == first else 2, 0, 0))
    assert policy.ranks(KEYED)[0] != first


Step = Callable[[Dispatcher, str], object]
STEPS: dict[str, Step] = {
    "arrived": lambda policy, name: policy.arrived(Dispatched(name, f"key {len(name) % 2}", 400), 5.0),
    "sent": lambda policy, name: policy.sent(Dispatched(name, "", 7), "a"),
    "gone": lambda policy, name: policy.gone(name),
    "tick": lambda policy, name: policy.tick(5.0),
    "adopt": lambda policy, name: policy.adopt(fleet("abcd"[: len(name)])),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["x", "yy", "zzz"])), max_size=30))
def test_nothing_is_left_of_requests_that_are_gone(steps: list[tuple[str, str]]) -> None:
    policy = dispatcher(budget=500)
    for step, name in steps:
        STEPS[step](policy, name)
    for name in ("x", "yy", "zzz"):
        policy.gone(name)
    assert len(policy) == 0
    assert policy.next_tick() is None
    assert policy.tick(100.0) == []


@pytest.mark.parametrize("key", ["", "key"])
def test_two_routers_that_know_the_same_rank_grammars_alike(key: str) -> None:
    if key:
        assert dispatcher("abcd").ranks(Dispatched("any", key)) == dispatcher("dcba").ranks(Dispatched("any", key))
    else:
        assert len(dispatcher().ranks(Dispatched("any", key))) == 2
