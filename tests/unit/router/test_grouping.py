"""Same grammar, same step; nobody waits for nothing, and nobody for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.dividing import Spare
from router.grouping import SELDOM_S, Grouping, Release, Waiting
from router.parameters import Parameters

LIMITS = Parameters(window_s=0.002, prefill_budget=1000, patience_s=0.1, seat_patience_s=0.25, retry_s=0.005)


@dataclass
class Replicas:
    """What a grouping asks: the ranks of a key, and who can take how much."""

    ranks: dict[str, Sequence[str]] = field(default_factory=dict)
    spare: dict[str, Spare] = field(default_factory=dict)

    def grouping(self) -> Grouping:
        return Grouping(lambda key, *_: self.ranks.get(key, ("a", "b")), self._spare_of, LIMITS)

    def _spare_of(self, replica: str, together: int) -> Spare | None:
        return self.spare.get(replica)


def waiting(request: str, at: float, key: str = "key", tokens: int = 100) -> Waiting:
    return Waiting(request, key, tokens, at)


def names(releases: Sequence[Release]) -> list[str]:
    return [request for release in releases for request in release.requests]


def test_a_request_alone_goes_at_once() -> None:
    grouping = Replicas().grouping()
    grouping.arrived(waiting("one", 5.0))
    assert grouping.tick(5.0) == [Release("a", "key", ("one",))]
    assert len(grouping) == 0
    assert grouping.next_tick() is None


def test_requests_of_other_grammars_are_no_reason_to_wait() -> None:
    grouping = Replicas().grouping()
    for request in "xyz":
        grouping.arrived(waiting(request, 5.0, key=request))
    assert names(grouping.tick(5.0)) == ["x", "y", "z"]


def test_requests_of_one_grammar_wait_for_more_and_go_together() -> None:
    grouping = Replicas().grouping()
    grouping.arrived(waiting("one", 5.0))
    grouping.arrived(waiting("two", 5.0))
    assert grouping.tick(5.0) == []
    assert grouping.next_tick() == pytest.approx(5.002)
    grouping.arrived(waiting("three", 5.001))
    assert grouping.tick(5.002) == [Release("a", "key", ("one", "two", "three"))]


def test_a_group_that_fills_a_step_waits_for_nobody() -> None:
    grouping = Replicas().grouping()
    for number in range(10):
        grouping.arrived(waiting(str(number), 5.0))
    assert len(names(grouping.tick(5.0))) == 10


def test_a_large_group_is_divided_over_the_first_ranks_by_what_is_spare() -> None:
    replicas = Replicas({"key": ("a", "b", "c")}, {"a": Spare(800, 99), "b": Spare(400, 99), "c": Spare(400, 99)})
    grouping = replicas.grouping()
    for number in range(9):
        grouping.arrived(waiting(str(number), 5.0))
    sent = {release.replica: len(release.requests) for release in grouping.tick(5.002)}
    assert sent == {"a": 6, "b": 3}


def test_no_release_exceeds_the_budget_of_a_step() -> None:
    grouping = Replicas({"key": ("a",)}).grouping()
    for number in range(25):
        grouping.arrived(waiting(str(number), 5.0))
    assert names(grouping.tick(5.0)) == [str(number) for number in range(10)]
    assert names(grouping.tick(5.1)) == [str(number) for number in range(10, 20)]
    assert names(grouping.tick(5.2)) == [str(number) for number in range(20, 25)]


def test_a_prompt_longer_than_a_step_goes_alone_where_there_is_any_room() -> None:
    replicas = Replicas({"key": ("a",)}, {"a": Spare(1, 9)})
    grouping = replicas.grouping()
    grouping.arrived(waiting("long", 5.0, tokens=50_000))
    grouping.arrived(waiting("next", 5.0, tokens=1))
    assert names(grouping.tick(5.0)) == ["long"]


def test_the_young_do_not_take_what_the_old_wait_for() -> None:
    replicas = Replicas({"old": ("a",), "young": ("a",)}, {"a": Spare(0, 0)})
    grouping = replicas.grouping()
    grouping.arrived(waiting("old", 5.0, "old"))
    assert grouping.tick(5.0) == []
    replicas.spare["a"] = Spare(100, 1)
    grouping.arrived(waiting("young", 5.001, "young"))
    assert grouping.tick(5.001) == []
    assert names(grouping.tick(5.005)) == ["old"]


def test_the_longer_a_group_has_waited_the_later_it_asks_again() -> None:
    replicas = Replicas({"key": ("a",)}, {"a": Spare(0, 0)})
    grouping, looks, now = replicas.grouping(), list[float](), 5.0
    grouping.arrived(waiting("one", now))
    while not grouping.tick(now):
        looks.append(now - 5.0)
        now = grouping.next_tick() or 0.0
    assert looks == pytest.approx([0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.2])
    assert now == pytest.approx(5.25)


def test_who_is_patient_asks_again_every_quarter_of_a_second() -> None:
    grouping = Grouping(lambda *_: ("a",), lambda *_: Spare(0, 0), replace(LIMITS, seat_patience_s=30.0))
    grouping.arrived(waiting("one", 5.0))
    for now in (5.0, 6.0, 20.0):
        assert grouping.tick(now) == []
    assert grouping.next_tick() == pytest.approx(20.0 + SELDOM_S)


def test_a_replica_that_may_have_room_is_asked_before_its_time_and_the_oldest_has_it() -> None:
    replicas = Replicas({"old": ("a",), "young": ("a",), "other": ("b",)}, {"a": Spare(0, 0), "b": Spare(0, 0)})
    grouping = replicas.grouping()
    for number, key in enumerate(replicas.ranks):
        grouping.arrived(waiting(key, 5.0 + number / 1e4, key))
    assert grouping.tick(5.001) == []
    replicas.spare = {"a": Spare(1000, 1), "b": Spare(1000, 1)}
    assert grouping.tick(5.002) == []
    grouping.roomier("a")
    assert names(grouping.tick(5.002)) == ["old"]
    assert grouping.tick(5.002) == []


def test_who_has_waited_long_enough_does_not_mind_what_is_yet_to_be_prefilled() -> None:
    replicas = Replicas({"key": ("a",)}, {"a": Spare(-5000, 2)})
    grouping = replicas.grouping()
    for number in range(3):
        grouping.arrived(waiting(str(number), 5.0))
    assert grouping.tick(5.05) == []
    assert names(grouping.tick(5.1)) == ["0", "1"]


def all_or_none(seats: dict[str, int], limits: Parameters = LIMITS) -> Grouping:
    """Every key's only replica is its first letter; one takes no part of a group that is too large for its seats."""

    def spare(replica: str, together: int) -> Spare:
        return Spare(1000, seats[replica] if seats[replica] >= together else 0)

    return Grouping(lambda key, *_: (key[0],), spare, limits)


def test_who_is_first_in_line_takes_what_there_is_before_long() -> None:
    seats = {"a": 2}
    grouping = all_or_none(seats, replace(LIMITS, hold_s=0.05))
    for number in range(4):
        grouping.arrived(waiting(str(number), 5.0, "a", tokens=1))
    assert grouping.tick(5.002) == []
    while not (releases := grouping.tick(now := grouping.next_tick() or 0.0)):
        pass
    assert names(releases) == ["0", "1"]
    assert now == pytest.approx(5.052)
    seats["a"] = 1
    grouping.roomier("a")
    assert names(grouping.tick(5.053)) == ["2"], "it has waited in the same line"


def test_the_line_is_behind_those_that_are_older() -> None:
    seats = {"a": 1}
    grouping = all_or_none(seats, replace(LIMITS, hold_s=0.05, seat_patience_s=9.0))
    for number, key in enumerate(("a old", "a old", "a young", "a young")):
        grouping.arrived(waiting(str(number), 5.0 + number / 1e4, key))
    assert grouping.tick(5.003) == []
    assert names(grouping.tick(5.06)) == ["0"]
    grouping.left("1")
    grouping.roomier("a")
    assert grouping.tick(5.061) == [], "the younger ones are first in line only now"


def test_a_small_group_leaves_no_rest_for_one_that_is_too_large() -> None:
    grouping = all_or_none({"a": 2})
    for number, key in enumerate(("a small", "a large", "a large", "a large")):
        grouping.arrived(waiting(str(number), 5.0 + number / 1e4, key))
    assert names(grouping.tick(5.003)) == ["0"]


def test_who_has_waited_for_long_may_leave_its_replica() -> None:
    spare = {"a": Spare(1000, 0), "b": Spare(1000, 1)}
    grouping = Grouping(lambda key, tokens, prefix, has_waited: ("a", "b") if has_waited else ("a",), lambda name, _: spare[name], LIMITS)
    grouping.arrived(waiting("one", 5.0))
    assert grouping.tick(5.09) == []
    assert [release.replica for release in grouping.tick(5.1)] == ["b"]


def test_who_waits_behind_others_is_ranked_anew() -> None:
    replicas = Replicas({"old": ("a",), "young": ("a",)}, {"a": Spare(0, 0)})
    grouping = replicas.grouping()
    for number, key in enumerate(replicas.ranks):
        grouping.arrived(waiting(key, 5.0 + number / 1e4, key))
    assert grouping.tick(5.001) == []
    replicas.ranks["young"] = ("b",)
    assert names(grouping.tick(5.02)) == ["young"]


def test_it_is_known_how_many_wait_for_each_replica() -> None:
    replicas = Replicas({"x": ("a", "b"), "y": ("b",), "z": ("a",)}, {"a": Spare(0, 0), "b": Spare(0, 0)})
    grouping = replicas.grouping()
    for number, key in enumerate("xyzx"):
        grouping.arrived(waiting(str(number), 5.0, key))
    for now in (5.002, 5.003):
        assert grouping.tick(now) == []
    assert grouping.waiting_for == {"a": 3, "b": 1}


def test_a_release_is_told_before_the_next_group_is_ranked() -> None:
    told = list[Release]()
    grouping = Grouping(lambda *_: ("b",) if told else ("a",), lambda *_: None, LIMITS, released=told.append)
    for key in "xy":
        grouping.arrived(waiting(key, 5.0, key))
    assert grouping.tick(5.0) == told == [Release("a", "x", ("x",)), Release("b", "y", ("y",))]


def test_a_full_replica_is_asked_again_soon() -> None:
    replicas = Replicas({"key": ("a",)}, {"a": Spare(0, 0)})
    grouping = replicas.grouping()
    grouping.arrived(waiting("one", 5.0))
    assert grouping.tick(5.0) == []
    assert grouping.next_tick() == pytest.approx(5.005)


def test_who_is_out_of_patience_goes_to_the_first_rank_full_or_not() -> None:
    replicas = Replicas({"key": ("a", "b")}, {"a": Spare(0, 0), "b": Spare(-5, 0)})
    grouping = replicas.grouping()
    grouping.arrived(waiting("one", 5.0))
    assert grouping.tick(5.2499) == []
    assert grouping.tick(5.25) == [Release("a", "key", ("one",))]


def test_without_replicas_requests_stay() -> None:
    replicas = Replicas({"key": ()})
    grouping = replicas.grouping()
    grouping.arrived(waiting("one", 5.0))
    assert grouping.tick(9.0) == []
    assert grouping.next_tick() == pytest.approx(9.005)
    replicas.ranks["key"] = ("a",)
    assert names(grouping.tick(9.1)) == ["one"]


def test_a_cancelled_request_goes_nowhere() -> None:
    grouping = Replicas().grouping()
    grouping.arrived(waiting("one", 5.0))
    grouping.arrived(waiting("two", 5.0))
    grouping.left("one")
    grouping.left("unknown")
    assert names(grouping.tick(5.0)) == ["two"]
    grouping.left("two")


def test_an_id_waits_once() -> None:
    grouping = Replicas().grouping()
    grouping.arrived(waiting("one", 5.0))
    grouping.arrived(waiting("one", 5.0))
    assert names(grouping.tick(5.0)) == ["one"]


REQUESTS = st.tuples(st.floats(0, 0.3), st.sampled_from("vwxyz"), st.integers(1, 1500))
ARRIVALS = st.lists(REQUESTS, min_size=1, max_size=30).map(
    lambda drawn: [Waiting(str(number), key, tokens, at) for number, (at, key, tokens) in enumerate(sorted(drawn))]
)
ROOM = st.lists(st.builds(Spare, st.integers(-100, 1200), st.integers(0, 6)), min_size=3, max_size=6)
RANKS = {"v": ("a", "b"), "w": ("b", "a"), "x": ("c",), "y": ("c", "a"), "z": ("b",)}


def ticks(grouping: Grouping, arrivals: Sequence[Waiting]) -> Iterator[tuple[float, list[Release]]]:
    """What a shell does: it ticks when something has arrived, and when it was told to."""
    upcoming, planned = list(arrivals), None
    while upcoming or planned is not None:
        now = min(time for time in (planned, upcoming[0].arrived_at if upcoming else None) if time is not None)
        while upcoming and upcoming[0].arrived_at <= now:
            grouping.arrived(upcoming.pop(0))
        yield now, grouping.tick(now)
        planned = grouping.next_tick()


@settings(max_examples=40)
@given(ARRIVALS, ROOM)
def test_everyone_goes_once_and_in_time_whatever_room_there_is(arrivals: list[Waiting], room: list[Spare]) -> None:
    replicas = Replicas(dict(RANKS))
    since, gone = {one.request: one.arrived_at for one in arrivals}, list[str]()
    for turn, (now, releases) in enumerate(ticks(replicas.grouping(), arrivals)):
        replicas.spare = {replica: room[(turn + index) % len(room)] for index, replica in enumerate("abc")}
        gone += names(releases)
        assert all(now - since[request] <= LIMITS.seat_patience_s + LIMITS.retry_s + 1e-9 for request in names(releases))
    assert sorted(gone) == sorted(since)


@settings(max_examples=40)
@given(ARRIVALS)
def test_with_room_nobody_waits_longer_than_the_window_and_the_lonely_not_at_all(arrivals: list[Waiting]) -> None:
    grouping = Grouping(lambda *_: ("a",), lambda *_: None, Parameters(prefill_budget=1_000_000))
    since = {one.request: one.arrived_at for one in arrivals}
    for now, releases in ticks(grouping, arrivals):
        for release in releases:
            waited = [now - since[request] for request in release.requests]
            assert max(waited) <= (LIMITS.window_s + 1e-12 if len(waited) > 1 else 0)


@settings(max_examples=40)
@given(ARRIVALS, ROOM)
def test_who_goes_or_goes_along_is_older_than_all_who_could_and_still_wait(arrivals: list[Waiting], room: list[Spare]) -> None:
    replicas = Replicas(dict(RANKS))
    grouping, waits = replicas.grouping(), dict[str, Waiting]()
    for number, arrival in enumerate(arrivals):
        waits[arrival.request] = replace(arrival, arrived_at=number * 0.001)
        grouping.arrived(waits[arrival.request])
    now = len(arrivals) * 0.001 + LIMITS.window_s
    for turn in range(20):
        replicas.spare = {replica: room[(turn + index) % len(room)] for index, replica in enumerate("abc")}
        releases = grouping.tick(now)
        gone = {request: waits.pop(request) for request in names(releases)}
        for release in releases:
            oldest = min(one.arrived_at for one in gone.values() if one.key == release.key)
            passed = [one for one in waits.values() if release.replica in RANKS[one.key] and one.arrived_at < oldest]
            assert not passed
        now += 0.001
