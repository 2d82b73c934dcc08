"""What a router knows of its replicas: its own requests exactly, the others' from reports, and nothing for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.fleet import Fleet
from router.load import LoadBoard
from router.parameters import Parameters
from router.replica_load import LoadReport
from tests.unit.router.clock import Clock

USUAL = Parameters(tokens_per_request=256)
NOBODY: Mapping[str, int] = {}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def board(clock: Clock, replicas: str = "ab") -> LoadBoard:
    made = LoadBoard(clock, USUAL)
    made.adopt(Fleet(replicas))
    return made


def report(replica: str, taken_at: float, requests: int = 0, tokens: int = 0, step_ms: float = 0.0) -> LoadReport:
    return LoadReport(replica, taken_at, requests, tokens, step_ms)


def load(known: LoadBoard) -> list[float]:
    return list(map(float, known.loads(NOBODY).load))


def requests(known: LoadBoard) -> list[float]:
    return list(map(float, known.loads(NOBODY).requests))


def test_own_requests_count_while_they_are_under_way(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 0)
    known.routed("two", "a", 0)
    assert load(known) == [2, 0]
    assert known.completed("one") == "a"
    assert known.completed("unknown") is None
    assert known.completed("one") is None
    assert load(known) == [1, 0]


def test_a_request_that_is_sent_again_counts_once(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 0)
    known.routed("one", "b", 0)
    assert load(known) == [0, 1]


def test_what_is_to_be_prefilled_is_load_but_takes_no_seat(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 512)
    assert load(known)[0] == pytest.approx(1 + 2)
    assert requests(known)[0] == known.taken("a") == 1
    clock.now += 1
    known.reported(report("a", clock.now, requests=1, tokens=256))
    assert load(known)[0] == pytest.approx(1 + 1)


def test_a_report_adds_the_requests_of_other_routers(clock: Clock) -> None:
    known = board(clock)
    known.routed("ours", "a", 0)
    clock.now += 1
    assert known.reported(report("a", clock.now, requests=5))
    assert load(known)[0] == pytest.approx(5)
    assert known.taken("a") == 5


def test_between_reports_the_others_are_assumed_to_do_as_we_do(clock: Clock) -> None:
    known = board(clock, "a")
    for number in range(10):
        known.routed(str(number), "a", 0)
    clock.now += 1
    known.reported(report("a", clock.now, requests=30))
    clock.now += 1
    for number in range(10):
        known.completed(str(number))
    # 20 of others beside 10 of ours, and one for the doubt that so few leave.
    assert load(known)[0] == pytest.approx(20 - 10 * 20 / 11)
    assert known.taken("a") == 20


def test_a_router_knows_its_share_of_the_traffic(clock: Clock) -> None:
    known = board(clock)
    assert known.share() == 1
    for number in range(20):
        known.routed(str(number), "ab"[number % 2], 0)
    clock.now += 1
    for replica in "ab":
        known.reported(report(replica, clock.now, requests=40))
    assert known.share() == pytest.approx(1 / (1 + 60 / 22))


def test_who_waits_for_a_replica_counts_for_others_in_proportion_and_only_now(clock: Clock) -> None:
    known = board(clock)
    for replica in "ab":
        known.reported(report(replica, clock.now, requests=3))
    assert known.share() == pytest.approx(1 / 4)
    assert known.loads({"b": 5, "gone": 9}).waiting.tolist() == pytest.approx([0, 20])
    assert known.loads({"a": 1}).waiting.tolist() == pytest.approx([4, 0])
    assert known.loads(NOBODY).waiting.tolist() == [0, 0]


def test_an_older_report_that_comes_late_changes_nothing(clock: Clock) -> None:
    known = board(clock, "a")
    assert known.reported(report("a", clock.now - 1, requests=10))
    assert not known.reported(report("a", clock.now - 2, requests=90))
    assert not known.reported(report("a", clock.now - 1, requests=90))
    assert load(known) == pytest.approx([10])


def test_a_replica_that_has_said_nothing_counts_as_an_average_one(clock: Clock) -> None:
    known = board(clock, "abc")
    known.reported(report("a", clock.now, requests=10))
    known.reported(report("b", clock.now, requests=30))
    assert load(known)[2] == pytest.approx(20)


def test_a_stale_report_says_nothing(clock: Clock) -> None:
    known = board(clock)
    assert not known.reported(report("a", clock.now - USUAL.stale_s, requests=10))
    assert known.reported(report("b", clock.now - USUAL.stale_s + 1, requests=10))
    assert known.taken("a") == 0
    assert known.taken("b") == 10


def test_what_ended_before_any_report_that_counts_is_not_remembered(clock: Clock) -> None:
    known = board(clock)
    for number in range(1000):
        known.routed(str(number), "a", 10)
        known.completed(str(number))
        clock.now += 1
    assert len(known._replicas["a"]._moves) <= 2 * USUAL.stale_s


def test_a_replicas_clock_that_is_ahead_is_read_as_ours(clock: Clock) -> None:
    known = board(clock, "a")
    known.reported(report("a", clock.now + 3600, requests=10))
    clock.now += 1
    known.reported(report("a", clock.now + 3600, requests=20))
    assert load(known) == pytest.approx([20])


def test_reports_count_at_once_when_our_clock_was_set_back(clock: Clock) -> None:
    known = board(clock, "a")
    known.reported(report("a", clock.now, requests=90))
    for number in range(100):
        known.routed(str(number), "a", 100)
        known.completed(str(number))
    known.routed("stays", "a", 100)
    clock.now -= 600
    assert known.reported(report("a", clock.now, requests=3))
    assert known.taken("a") == 3
    assert len(known._replicas["a"]._moves) == 0
    known.completed("stays")
    clock.now += 1
    assert known.reported(report("a", clock.now, requests=2))
    assert load(known) == pytest.approx([2])


def test_much_slower_replicas_count_as_loaded_by_as_much_more(clock: Clock) -> None:
    known = board(clock, "abcd")
    for replica, step_ms in zip("abcd", (10, 10, 14, 30), strict=True):
        known.reported(report(replica, clock.now, requests=10, step_ms=step_ms))
    assert load(known) == pytest.approx([10, 10, 10, 25])
    assert requests(known) == pytest.approx([10, 10, 10, 10])


def test_strangers_change_nothing(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "nobody", 100)
    assert not known.reported(report("nobody", clock.now, requests=10))
    assert load(known) == [0, 0]
    assert known.taken("nobody") == 0


def test_who_stays_is_remembered_and_who_leaves_is_forgotten(clock: Clock) -> None:
    known = board(clock, "abc")
    known.routed("one", "a", 0)
    known.routed("two", "c", 0)
    known.adopt(Fleet("bcd"))
    assert load(known) == [0, 1, 0]
    assert known.completed("one") is None
    known.adopt(Fleet("ab"))
    assert load(known) == [0, 0]


def test_without_replicas_there_are_no_loads(clock: Clock) -> None:
    known = board(clock, "")
    known.routed("one", "a", 10)
    assert load(known) == []
    assert known.loads({"a": 1}).waiting.tolist() == []
    assert known.share() == 1


EVENTS = st.lists(
    st.tuples(st.sampled_from(["routed", "completed", "reported", "late report", "wait", "adopt"]), st.integers(0, 5), st.integers(0, 500)),
    max_size=40,
)


@dataclass
class Played:
    """A board, what happens to it, and where its requests are."""

    clock: Clock = field(default_factory=Clock)
    under_way: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = board(self.clock, "abcd")

    def play(self, what: str, which: int, size: int) -> None:
        replica, request = "abcdef"[which], str(size % 20)
        if what == "routed":
            self.known.routed(request, replica, size)
            self.under_way[request] = replica
        elif what == "completed":
            self.known.completed(request)
            self.under_way.pop(request, None)
        elif what == "adopt":
            self.known.adopt(Fleet("abcdef"[which:]))
        elif what == "wait":
            self.clock.now += size / 100
        else:
            late = size / 10 if what == "late report" else 0.0
            self.known.reported(report(replica, self.clock.now - late, requests=size % 30, tokens=size, step_ms=size % 4))
        self.under_way = {name: at for name, at in self.under_way.items() if at in self.known.fleet.positions}

    def own(self) -> list[int]:
        return [sum(at == replica for at in self.under_way.values()) for replica in self.known.fleet.ids]


@settings(max_examples=60)
@given(EVENTS)
def test_loads_are_never_below_what_is_known_for_sure_whatever_happens(events: list[tuple[str, int, int]]) -> None:
    played = Played()
    for event in events:
        played.play(*event)
        loads = played.known.loads(NOBODY)
        assert all(loads.requests >= played.own())
        assert all(loads.load >= loads.requests - 1e-9)
        assert 0 < played.known.share() <= 1


@settings(max_examples=100)
@given(EVENTS.filter(bool))
def test_the_picture_that_is_kept_is_what_a_new_one_would_show(events: list[tuple[str, int, int]]) -> None:
    played = Played()
    for event in events:
        played.play(*event)
        kept, share = (load(played.known), requests(played.known)), played.known.share()
    played.known.adopt(played.known.fleet)
    assert (load(played.known), requests(played.known)) == kept
    assert played.known.share() == share


def test_a_burst_of_ours_takes_no_seats_for_others(clock: Clock) -> None:
    known = board(clock)
    for name in "ab":
        known.reported(report(name, clock.now, requests=40))
    assert known.share() < 0.1
    for number in range(20):
        known.routed(str(number), "a", 0)
    clock.now += 1.0
    known.reported(report("a", clock.now, requests=60))
    assert known.taken("a") == 60
