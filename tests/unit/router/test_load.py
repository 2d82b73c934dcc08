"""What a router knows of its replicas: its own requests exactly, the others' from reports, and nothing for ever."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.fleet import Fleet, Member
from router.load import LoadBoard, LoadReport
from router.parameters import Parameters

SHARP = Parameters(tokens_per_request=256, smooth_s=1e-6)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def board(clock: Clock, replicas: str = "ab", scale: Parameters = SHARP) -> LoadBoard:
    made = LoadBoard(clock, scale)
    made.adopt(Fleet(map(Member, replicas)))
    return made


def report(replica: str, taken_at: float, requests: int = 0, tokens: int = 0, step_ms: float = 0.0) -> LoadReport:
    return LoadReport(replica, taken_at, requests, 0, tokens, step_ms=step_ms)


def test_own_requests_count_while_they_are_under_way(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 0)
    known.routed("two", "a", 0)
    assert known.loads().tolist() == [2, 0]
    known.completed("one")
    known.completed("unknown")
    known.completed("one")
    assert known.loads().tolist() == [1, 0]


def test_a_request_that_is_sent_again_counts_once(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 0)
    known.routed("one", "b", 0)
    assert known.loads().tolist() == [0, 1]


def test_prefill_tokens_count_until_they_are_thought_to_be_worked_off(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "a", 512)
    assert known.loads()[0] == pytest.approx(1 + 2)
    clock.now += SHARP.half_life_s
    assert known.loads()[0] == pytest.approx(1 + 1)
    assert known.backlog("a") == pytest.approx(256)
    known.completed("one")
    assert known.loads()[0] == pytest.approx(0)


def test_a_report_adds_the_requests_of_other_routers(clock: Clock) -> None:
    known = board(clock)
    known.routed("ours", "a", 0)
    clock.now += 1
    known.reported(report("a", clock.now, requests=5))
    assert known.loads()[0] == pytest.approx(5)


def test_what_was_sent_after_a_report_was_taken_comes_on_top(clock: Clock) -> None:
    known = board(clock, "a")
    taken = clock.now
    clock.now += 1
    known.routed("later", "a", 0)
    known.reported(report("a", taken, requests=0))
    assert known.loads()[0] == pytest.approx(1)


def test_what_ended_after_a_report_was_taken_is_no_request_of_others(clock: Clock) -> None:
    known = board(clock, "a")
    known.routed("ours", "a", 0)
    clock.now += 1
    taken = clock.now
    clock.now += 1
    known.completed("ours")
    known.reported(report("a", taken, requests=1))
    assert known.loads()[0] == pytest.approx(0)


def test_reported_prefill_replaces_what_was_guessed(clock: Clock) -> None:
    known = board(clock, "a")
    known.routed("before", "a", 10_000)
    clock.now += 0.01
    taken = clock.now
    clock.now += 0.01
    known.routed("after", "a", 300)
    known.reported(report("a", taken, requests=1, tokens=1000))
    assert known.backlog("a") == pytest.approx(1000 * 2 ** (-0.01 / SHARP.half_life_s) + 300)


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
    assert known.loads()[0] == pytest.approx(20 - 10 * 20 / 11)


def test_a_router_knows_its_share_of_the_traffic(clock: Clock) -> None:
    known = board(clock, "ab")
    assert known.share() == 1
    for number in range(20):
        known.routed(str(number), "ab"[number % 2], 0)
    clock.now += 1
    known.reported(report("a", clock.now, requests=40))
    known.reported(report("b", clock.now, requests=40))
    clock.now += 1
    assert known.share() == pytest.approx(1 / (1 + 60 / 22))


def test_reports_are_smoothed(clock: Clock) -> None:
    known = board(clock, "a", Parameters(smooth_s=2.0))
    known.reported(report("a", clock.now, requests=10))
    clock.now += 2
    known.reported(report("a", clock.now, requests=20))
    assert known.loads()[0] == pytest.approx(20 - 10 / math.e)


def test_an_older_report_that_comes_late_changes_nothing(clock: Clock) -> None:
    known = board(clock, "a")
    known.reported(report("a", clock.now - 1, requests=10))
    known.reported(report("a", clock.now - 2, requests=90))
    assert known.loads()[0] == pytest.approx(10)
    last = known.report("a")
    assert last is not None
    assert last.running == 10


def test_a_silent_replica_counts_as_an_average_one(clock: Clock) -> None:
    known = board(clock, "abc")
    known.reported(report("a", clock.now, requests=10))
    known.reported(report("b", clock.now, requests=30))
    assert known.loads()[2] == pytest.approx(20)
    clock.now += SHARP.stale_s - 1
    known.reported(report("b", clock.now, requests=30))
    loads = known.loads()
    assert 28 < loads[0] < 30
    assert loads[2] == pytest.approx(loads[0], rel=0.1)


def test_stale_reports_count_no_more(clock: Clock) -> None:
    known = board(clock)
    known.reported(report("a", clock.now, requests=10))
    clock.now += SHARP.stale_s
    assert known.loads().tolist() == [0, 0]
    known.reported(report("b", clock.now - SHARP.stale_s, requests=10))
    assert known.loads().tolist() == [0, 0]


def test_a_clock_that_is_ahead_is_read_as_ours(clock: Clock) -> None:
    known = board(clock, "a")
    known.reported(report("a", clock.now + 3600, requests=10))
    clock.now += 1
    known.reported(report("a", clock.now + 3600, requests=20))
    assert known.loads()[0] == pytest.approx(20)


def test_much_slower_replicas_count_as_loaded_by_as_much_more(clock: Clock) -> None:
    known = board(clock, "abcd")
    for replica, step_ms in zip("abcd", (10, 10, 14, 30), strict=True):
        known.reported(report(replica, clock.now, requests=10, step_ms=step_ms))
    assert known.loads().tolist() == pytest.approx([10, 10, 10, 25])


def test_strangers_change_nothing(clock: Clock) -> None:
    known = board(clock)
    known.routed("one", "nobody", 100)
    known.reported(report("nobody", clock.now, requests=10))
    assert known.loads().tolist() == [0, 0]
    assert known.report("nobody") is None
    assert known.backlog("nobody") == 0


def test_who_stays_is_remembered_and_who_leaves_is_forgotten(clock: Clock) -> None:
    known = board(clock, "abc")
    known.routed("one", "a", 0)
    known.routed("two", "c", 0)
    known.adopt(Fleet(map(Member, "bcd")))
    assert known.loads().tolist() == [0, 1, 0]
    known.completed("one")
    known.adopt(Fleet(map(Member, "ab")))
    assert known.loads().tolist() == [0, 0]
    known.adopt(Fleet())
    assert known.loads().tolist() == []


EVENTS = st.lists(
    st.tuples(st.sampled_from(["routed", "completed", "reported", "late report", "wait", "adopt"]), st.integers(0, 5), st.integers(0, 500)),
    max_size=40,
)


@settings(max_examples=40)
@given(EVENTS)
def test_loads_are_never_below_what_is_known_for_sure_whatever_happens(events: list[tuple[str, int, int]]) -> None:
    clock, under_way = Clock(), dict[str, str]()
    known = board(clock, "abcd")
    for what, which, size in events:
        replica = "abcdef"[which]
        if what == "routed":
            known.routed(str(size % 20), replica, size)
            under_way[str(size % 20)] = replica
        elif what == "completed":
            known.completed(str(size % 20))
            under_way.pop(str(size % 20), None)
        elif what == "adopt":
            known.adopt(Fleet(map(Member, "abcdef"[which:])))
        elif what == "wait":
            clock.now += size / 100
        else:
            known.reported(report(replica, clock.now - (size / 10 if what == "late report" else 0), which, size))
        under_way = {request: replica for request, replica in under_way.items() if replica in known.fleet.positions}
        sure = [sum(replica == one for one in under_way.values()) for replica in known.fleet.ids]
        assert all(load >= count - 1e-6 for load, count in zip(known.loads(), sure, strict=True))


MOVES = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["a", "b", ""]), st.integers(0, 4000)), max_size=20)


@settings(max_examples=60)
@given(MOVES, st.booleans())
def test_what_is_added_to_the_picture_is_what_a_new_one_would_show(moves: list[tuple[str, str, int]], others: bool) -> None:
    clock = Clock()
    known = board(clock)
    for number in range(12):
        known.routed(str(number), "a", 100)
    clock.now += 5
    if others:
        known.reported(report("a", clock.now - 1, 12, 500, step_ms=10))
        known.reported(report("b", clock.now - 1, 20, 100, step_ms=30))
    for number in range(12):
        known.loads()
        known.completed(str(number))
    for request, replica, tokens in moves:
        known.loads()
        if replica:
            known.routed(request, replica, tokens)
        else:
            known.completed(request)
    loads, requests = known.loads().tolist(), known.requests().tolist()
    known.adopt(known.fleet)
    assert known.loads().tolist() == pytest.approx(loads)
    assert known.requests().tolist() == pytest.approx(requests)


def test_a_burst_of_ours_takes_no_seats_for_others(clock: Clock) -> None:
    known = board(clock, scale=Parameters())
    for name in "ab":
        known.reported(report(name, clock.now, requests=40))
    assert known.share() < 0.1
    for number in range(20):
        known.routed(str(number), "a", 0)
    clock.now += 1.0
    known.reported(report("a", clock.now, requests=60))
    assert known.taken("a") == pytest.approx(60, abs=0.5)
