"""Same grammar, same step; the oldest first, and nobody for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.grouping import Dispatched, Grouping, Places, Release
from router.parameters import Parameters

LIMITS = Parameters(patience_s=10.0, longest_wait_s=30.0, retry_s=0.25)
A, AB = ("a",), ("a", "b")


@dataclass
class Replicas:
    """What a grouping asks: the ranks of a key, who has seats, and how many tokens each place is given; knows what it was asked."""

    ranks: dict[str | None, Sequence[str]] = field(default_factory=dict)
    seats: dict[str, int] = field(default_factory=dict)
    tokens: float = 1000.0
    kept_free: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, int, bool]] = field(default_factory=list)
    told: list[Release] = field(default_factory=list)

    def grouping(self, parameters: Parameters = LIMITS) -> Grouping:
        return Grouping(self._places, self._seats, self._released, parameters)

    def short_sighted(self) -> Grouping:
        """It does not look beyond what makes all replicas full."""
        return Grouping(self._places, self._seats, self._released, LIMITS, none_left=self.none_left)

    def _seats(self, replica: str, together: int, oldest: Dispatched) -> int:
        free = self.seats.get(replica, 1 << 30)
        return free if free >= min(together, self.kept_free.get(replica, 0)) else 0

    def _places(self, oldest: Dispatched, tokens: int, has_waited: bool) -> Places:
        self.asked.append((oldest.name, tokens, has_waited))
        return Places(self.ranks.get(oldest.key, AB), self.tokens)

    def _released(self, release: Release) -> None:
        self.told.append(release)
        if release.replica in self.seats:
            self.seats[release.replica] -= len(release.requests)

    def none_left(self, full: Set[str], has_waited_long: bool) -> bool:
        return full >= set(self.seats) and not has_waited_long


def waiting(request: str, at: float = 5.0, key: str | None = "key", tokens: int = 100) -> Dispatched:
    return Dispatched(request, key, tokens, arrived_at=at)


def arrive(grouping: Grouping, *requests: Dispatched) -> Grouping:
    for request in requests:
        grouping.arrived(request)
    return grouping


def names(releases: Sequence[Release]) -> list[str]:
    return [request for release in releases for request in release.requests]


def sizes(releases: Sequence[Release]) -> dict[str, int]:
    return {release.replica: len(release.requests) for release in releases}


def test_a_request_alone_goes_at_once() -> None:
    grouping = arrive(Replicas().grouping(), waiting("one"))
    assert grouping.tick(5.0) == [Release("a", ("one",))]
    assert len(grouping) == 0
    assert grouping.next_tick() is None
    assert grouping.tick(6.0) == []


def test_requests_of_one_grammar_that_wait_together_go_together() -> None:
    grouping = arrive(Replicas().grouping(), waiting("one"), waiting("other", key="other"), waiting("two"))
    assert grouping.tick(5.0) == [Release("a", ("one", "two")), Release("a", ("other",))]


def test_who_has_no_grammar_has_no_group() -> None:
    grouping = arrive(Replicas().grouping(), waiting("one", key=None), waiting("two", key=None), waiting("three", key=""))
    assert [release.requests for release in grouping.tick(5.0)] == [("one",), ("two",), ("three",)]


def test_the_oldest_go_first_whoever_was_told_of_first() -> None:
    replicas = Replicas(seats={"a": 1, "b": 0})
    grouping = arrive(replicas.grouping(), waiting("young", 5.1, "young"), waiting("old", 5.0, "old"))
    assert names(grouping.tick(5.2)) == ["old"]


def test_the_rest_of_a_group_keeps_its_place_before_younger_ones() -> None:
    replicas = Replicas({"old": A, "young": A}, {"a": 2})
    grouping = arrive(replicas.grouping(), *(waiting(f"old {number}", 5.0, "old") for number in range(3)), waiting("young", 5.1, "young"))
    assert names(grouping.tick(5.2)) == ["old 0", "old 1"]
    for went in ("old 2", "young"):
        replicas.seats["a"] = 1
        grouping.room_freed("a")
        assert names(grouping.tick(5.3)) == [went]


def test_the_young_do_not_take_what_the_old_wait_for() -> None:
    replicas = Replicas({"old": A, "young": A, "elsewhere": ("b",)}, {"a": 0})
    grouping = arrive(replicas.grouping(), waiting("old", 5.0, "old"))
    assert grouping.tick(5.0) == []
    replicas.seats["a"] = 1
    arrive(grouping, waiting("young", 5.001, "young"), waiting("elsewhere", 5.002, "elsewhere"))
    assert names(grouping.tick(5.01)) == ["elsewhere"]
    assert names(grouping.tick(5.25)) == ["old"]


def test_who_arrives_joins_those_of_its_grammar_that_wait() -> None:
    replicas = Replicas(seats={"a": 0, "b": 0})
    grouping = arrive(replicas.grouping(), waiting("old"))
    assert grouping.tick(5.0) == []
    arrive(grouping, waiting("between", 5.001, "other"), waiting("young", 5.002))
    assert grouping.tick(5.002) == []
    replicas.seats["a"] = 2
    grouping.room_freed("a")
    assert names(grouping.tick(5.003)) == ["old", "young"]


def test_a_group_asks_again_when_it_is_time() -> None:
    replicas = Replicas(seats={"a": 0, "b": 0})
    grouping = arrive(replicas.grouping(), waiting("one"))
    assert grouping.tick(5.0) == []
    assert grouping.next_tick() == pytest.approx(5.25)
    replicas.seats["a"] = 1
    assert grouping.tick(5.2) == []
    assert names(grouping.tick(5.25)) == ["one"]


def test_a_replica_that_may_have_room_is_asked_before_its_time_and_once() -> None:
    replicas = Replicas({"old": A, "young": A, "other": ("b",)}, {"a": 0, "b": 0})
    grouping = replicas.grouping()
    for number, key in enumerate(("old", "young", "other")):
        arrive(grouping, waiting(key, 5.0 + number / 1e4, key))
    assert grouping.tick(5.001) == []
    replicas.seats = {"a": 1, "b": 1}
    assert grouping.tick(5.002) == []
    grouping.room_freed("a")
    assert names(grouping.tick(5.003)) == ["old"]
    replicas.seats["a"] = 1
    assert grouping.tick(5.004) == []


def test_all_are_asked_when_there_may_be_room_where_nobody_has_waited() -> None:
    replicas = Replicas({"key": A}, {"a": 0})
    grouping = arrive(replicas.grouping(), waiting("one"))
    assert grouping.tick(5.0) == []
    replicas.ranks["key"] = ("new",)
    grouping.room_freed("new")
    assert grouping.tick(5.001) == []
    grouping.ask_all()
    assert [release.replica for release in grouping.tick(5.002)] == ["new"]


def test_who_asks_again_is_ranked_anew() -> None:
    replicas = Replicas({"key": A}, {"a": 0})
    grouping = arrive(replicas.grouping(), waiting("one"))
    assert grouping.tick(5.0) == []
    replicas.ranks["key"] = ("b",)
    assert [release.replica for release in grouping.tick(5.25)] == ["b"]


def test_places_are_filled_in_their_order_up_to_their_tokens_and_then_the_one_given_least() -> None:
    replicas = Replicas({"key": ("a", "b", "c")}, tokens=250)
    grouping = arrive(replicas.grouping(), *(waiting(str(number)) for number in range(4)))
    assert sizes(grouping.tick(5.0)) == {"a": 3, "b": 1}
    arrive(grouping, waiting("long", tokens=900), *(waiting(str(number)) for number in range(8)))
    assert sizes(grouping.tick(5.0)) == {"a": 1, "b": 4, "c": 4}


def test_a_place_takes_no_more_than_it_has_seats() -> None:
    replicas = Replicas({"key": ("a", "b", "c")}, {"a": 2, "b": 0, "c": 3})
    grouping = arrive(replicas.grouping(), *(waiting(str(number)) for number in range(9)))
    assert grouping.tick(5.0) == [Release("a", ("0", "1")), Release("c", ("2", "3", "4"))]
    assert len(grouping) == 4


def test_places_are_asked_for_the_tokens_of_a_group_but_one_request_cannot_be_divided() -> None:
    replicas = Replicas(seats={"a": 0, "b": 0})
    grouping = arrive(replicas.grouping(), waiting("alone", key="alone", tokens=50_000), waiting("one"), waiting("two", tokens=300))
    grouping.tick(5.0)
    grouping.left("one")
    grouping.tick(15.0)
    assert replicas.asked == [("alone", 0, False), ("one", 400, False), ("alone", 0, True), ("two", 0, True)]


def test_who_has_waited_too_long_goes_to_the_first_rank_full_or_not_and_nobody_with_it() -> None:
    replicas = Replicas(seats={"a": 0, "b": -5})
    grouping = arrive(replicas.grouping(), waiting("one", 5.0), waiting("two", 6.0))
    for now in (5.0, 20.0, 34.999):
        assert grouping.tick(now) == []
    assert grouping.tick(36.0 - 1e-6) == [Release("a", ("one",))]
    assert grouping.tick(36.25) == [Release("a", ("two",))]


def test_a_group_that_is_first_in_line_waits_for_more_seats_at_once_but_not_for_long() -> None:
    replicas = Replicas({"key": A, "next": A}, {"a": 2}, kept_free={"a": 4})
    grouping = arrive(replicas.grouping(), *(waiting(str(number)) for number in range(6)), waiting("behind", 5.5, "next"))
    assert grouping.tick(5.5) == grouping.tick(8.4) == []
    assert grouping.tick(5.5 + LIMITS.hold_s + LIMITS.retry_s) == [Release("a", ("0", "1"))]
    replicas.seats["a"] = 4
    assert grouping.tick(9.5) == [Release("a", ("2", "3", "4", "5"))]


def test_a_group_for_which_there_is_room_waits_for_nobody() -> None:
    replicas = Replicas({"key": A}, {"a": 2}, kept_free={"a": 4})
    grouping = arrive(replicas.grouping(), waiting("one"), waiting("two"))
    assert names(grouping.tick(5.0)) == ["one", "two"]


def test_it_is_known_how_many_wait_for_each_replica() -> None:
    replicas = Replicas({"x": AB, "y": ("b",), "z": A}, {"a": 0, "b": 0})
    grouping = replicas.grouping()
    for number, key in enumerate("xyzx"):
        arrive(grouping, waiting(str(number), 5.0, key))
    assert grouping.tick(5.0) == []
    assert grouping.tick(5.1) == []
    assert grouping.waiting_for == {"a": 3, "b": 1}
    for number in range(4):
        grouping.left(str(number))
    assert grouping.tick(5.2) == []
    assert grouping.waiting_for == {}


def test_a_release_is_told_before_the_next_group_is_ranked() -> None:
    told = list[Release]()
    grouping = Grouping(lambda *_: Places(("b",) if told else A, 1000), lambda *_: 9, told.append, LIMITS)
    arrive(grouping, waiting("x", key="x"), waiting("y", key="y"))
    assert grouping.tick(5.0) == told == [Release("a", ("x",)), Release("b", ("y",))]


def test_without_replicas_requests_stay_however_long_they_wait() -> None:
    replicas = Replicas({"key": ()})
    grouping = arrive(replicas.grouping(), waiting("one"))
    assert grouping.tick(99.0) == []
    assert grouping.next_tick() == pytest.approx(99.25)
    replicas.ranks["key"] = A
    assert names(grouping.tick(99.25)) == ["one"]


def test_a_request_takes_as_many_seats_as_it_has_sequences() -> None:
    replicas = Replicas({"key": A}, {"a": 4})
    grouping = arrive(
        replicas.grouping(), Dispatched("three", "key", sequences=3, arrived_at=5.0), waiting("one"), waiting("two"), waiting("last")
    )
    assert names(grouping.tick(5.0)) == ["three", "one"]
    assert grouping.waiting_for == {}
    replicas.seats["a"] = 0
    assert grouping.tick(5.25) == []
    arrive(grouping, Dispatched("five", "key", sequences=5, arrived_at=5.3))
    assert grouping.tick(5.5) == []
    grouping.tick(5.75)
    assert grouping.waiting_for == {"a": 7}


def test_a_request_of_more_sequences_than_seats_waits_until_a_share_of_them_is_free() -> None:
    replicas = Replicas({"key": A}, {"a": 3}, kept_free={"a": 4})
    grouping = arrive(replicas.grouping(), Dispatched("large", "key", sequences=100, arrived_at=5.0))
    assert grouping.tick(5.0) == []
    replicas.seats["a"] = 4
    grouping.room_freed("a")
    assert names(grouping.tick(5.01)) == ["large"]


def test_a_cancelled_request_goes_nowhere() -> None:
    replicas = Replicas(seats={"a": 0, "b": 0})
    grouping = arrive(replicas.grouping(), waiting("one"), waiting("two"))
    assert grouping.tick(5.0) == []
    grouping.left("one")
    grouping.left("unknown")
    replicas.seats["a"] = 2
    assert names(grouping.tick(5.25)) == ["two"]
    grouping.left("two")
    assert len(grouping) == 0


def test_an_id_waits_once() -> None:
    grouping = arrive(Replicas().grouping(), waiting("one"), waiting("one"), waiting("one", key="other"))
    assert names(grouping.tick(5.0)) == ["one"]


KEYS = st.sampled_from(["v", "w", "x", "y", "z", None])
REQUESTS = st.tuples(st.floats(0, 3), KEYS, st.integers(0, 1500))
ARRIVALS = st.lists(REQUESTS, min_size=1, max_size=30).map(
    lambda drawn: [waiting(str(number), at, key, tokens) for number, (at, key, tokens) in enumerate(sorted(drawn, key=lambda one: one[0]))]
)
ROOM = st.lists(st.integers(-1, 4), min_size=4, max_size=7)
RANKS: dict[str | None, Sequence[str]] = {"v": AB, "w": ("b", "a"), "x": ("c",), "y": ("c", "a"), "z": ("b",), None: ("c", "b")}
HASTY = Parameters(patience_s=0.5, longest_wait_s=1.0, retry_s=0.25)


def ticks(grouping: Grouping, arrivals: Sequence[Dispatched]) -> Iterator[tuple[float, list[Release]]]:
    """What a shell does: it ticks when something has arrived, and when it was told to."""
    upcoming, planned = list(arrivals), None
    while upcoming or planned is not None:
        now = min(time for time in (planned, upcoming[0].arrived_at if upcoming else None) if time is not None)
        while upcoming and upcoming[0].arrived_at <= now:
            grouping.arrived(upcoming.pop(0))
        yield now, grouping.tick(now)
        planned = grouping.next_tick()


@settings(max_examples=60)
@given(ARRIVALS, ROOM)
def test_everyone_goes_once_and_in_time_whatever_room_there_is(arrivals: list[Dispatched], room: list[int]) -> None:
    replicas = Replicas(dict(RANKS), tokens=500)
    grouping = replicas.grouping(HASTY)
    since, gone = {one.name: one.arrived_at for one in arrivals}, list[str]()
    for turn, (now, releases) in enumerate(ticks(grouping, arrivals)):
        replicas.seats = {replica: room[(turn + index) % len(room)] for index, replica in enumerate("abc")}
        gone += names(releases)
        assert all(now - since[request] <= HASTY.longest_wait_s + HASTY.retry_s + 1e-9 for request in names(releases))
    assert sorted(gone) == sorted(since)
    assert gone == names(replicas.told)
    assert len(grouping) == 0


@settings(max_examples=60)
@given(ARRIVALS)
def test_where_there_is_room_nobody_waits_at_all(arrivals: list[Dispatched]) -> None:
    since = {one.name: one.arrived_at for one in arrivals}
    for now, releases in ticks(Replicas().grouping(), arrivals):
        assert all(now == since[request] for request in names(releases))


@settings(max_examples=60)
@given(ARRIVALS, ROOM)
def test_whose_turn_it_is_is_older_than_all_who_could_go_there_and_still_wait(arrivals: list[Dispatched], room: list[int]) -> None:
    replicas = Replicas(dict(RANKS), tokens=500)
    grouping = replicas.grouping()
    waits = {one.name: replace(one, arrived_at=number * 0.001) for number, one in enumerate(arrivals)}
    arrive(grouping, *waits.values())
    for turn in range(20):
        replicas.seats = {replica: room[(turn + index) % len(room)] for index, replica in enumerate("abc")}
        grouping.room_freed("abc"[turn % 3])
        for release in (releases := grouping.tick(1.0 + turn / 1000)):
            first = waits[release.requests[0]]
            turn_of = min(one.arrived_at for one in waits.values() if one is first or one.key == first.key is not None)
            left = [one for one in waits.values() if one.name not in names(releases)]
            assert not [one for one in left if release.replica in RANKS[one.key] and one.arrived_at < turn_of]
        for request in names(releases):
            del waits[request]


def test_a_tick_ranks_what_is_new_and_no_more_than_it_takes_to_find_all_replicas_full() -> None:
    replicas = Replicas({str(number): A for number in range(1000)}, {"a": 3})
    grouping = arrive(replicas.short_sighted(), *(waiting(f"request-{number}", key=str(number)) for number in range(1000)))
    assert names(grouping.tick(5.0)) == ["request-0", "request-1", "request-2"]
    assert (len(replicas.asked), grouping.waiting_for) == (1000, {})
    replicas.asked.clear()
    for tick in range(1, 20):
        assert grouping.tick(5.0 + tick / 4) == []
        assert grouping.waiting_for == {"a": 997}
    assert len(replicas.asked) <= 20
    replicas.seats["a"] = 2
    grouping.room_freed("a")
    assert names(grouping.tick(10.0)) == ["request-3", "request-4"]


def test_what_has_waited_for_longest_is_looked_at_though_all_are_full() -> None:
    replicas = Replicas(seats={"a": 0, "b": 0})
    requests = [waiting(f"request-{number}", at=float(number), key=str(number)) for number in range(40)]
    grouping = arrive(replicas.short_sighted(), *requests)
    for now, gone in ((39.0, range(10)), (45.0, range(10, 16))):
        replicas.asked.clear()
        assert sorted(names(grouping.tick(now))) == sorted(f"request-{number}" for number in gone), "their replicas answer nothing"
        assert len(replicas.asked) <= 40


def test_a_group_that_goes_in_parts_keeps_its_place_and_what_leaves_makes_none() -> None:
    replicas = Replicas({"x": A, "y": A}, {"a": 1})
    first, second = (waiting("x1", 1.0, "x"), waiting("y1", 2.0, "y")), (waiting("x2", 3.0, "x"), waiting("y2", 4.0, "y"))
    grouping = arrive(replicas.short_sighted(), *first, *second)
    grouping.left("x1")
    assert names(grouping.tick(5.0)) == ["y1"]
    replicas.seats["a"] = 1
    grouping.room_freed("a")
    assert names(grouping.tick(6.0)) == ["x2"]
    grouping.left("y2")
    assert (len(grouping), grouping.next_tick()) == (0, None)
