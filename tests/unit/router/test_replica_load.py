"""One replica's load: what it has said of itself, and what we have sent it since."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.parameters import Parameters
from router.replica_load import LoadReport, ReplicaLoad, Sent


def silent() -> ReplicaLoad:
    return ReplicaLoad(Parameters().steps_smooth_s)


def sent(at: float, tokens: int = 0) -> Sent:
    return Sent("a", at, tokens)


def report(requests: int, tokens: int = 0, step_ms: float = 0.0) -> LoadReport:
    return LoadReport("a", 0.0, requests, tokens, step_ms)


def test_what_a_report_counts_beyond_our_own_is_others() -> None:
    replica = silent()
    replica.came(sent(1.0))
    replica.reported(report(5), 2.0)
    assert (replica.own, replica.own_then, replica.others) == (1, 1, 4)
    assert replica.requests(0.0, 0.0) == 5


def test_a_request_of_several_sequences_counts_as_many_times_and_its_prompt_once() -> None:
    replica, ours = silent(), Sent("a", 3.0, 100, sequences=4)
    replica.came(ours)
    assert (replica.own, replica.prefill_tokens(0.0)) == (4, 100)
    replica.reported(report(2), 2.0)
    assert (replica.own_then, replica.others) == (0, 2)
    replica.reported(report(6), 3.5)
    assert (replica.own_then, replica.others) == (4, 2)
    replica.went(ours, 4.0)
    assert (replica.own, replica.requests(0.0, 0.0)) == (0, 2)


def test_what_has_come_since_a_report_was_taken_is_not_in_it() -> None:
    replica = silent()
    replica.came(sent(3.0))
    replica.reported(report(0), 2.0)
    assert (replica.own, replica.own_then, replica.others) == (1, 0, 0)
    assert replica.requests(0.0, 0.0) == 1


def test_what_has_gone_since_a_report_was_taken_is_no_request_of_others() -> None:
    replica, ours = silent(), sent(1.0)
    replica.came(ours)
    replica.went(ours, 3.0)
    replica.reported(report(1), 2.0)
    assert (replica.own, replica.own_then, replica.others) == (0, 1, 0)
    assert replica.requests(0.0, 0.0) == 0


def test_a_report_that_has_not_heard_of_ours_yet_leaves_no_fewer_than_no_others() -> None:
    replica = silent()
    for _ in range(3):
        replica.came(sent(1.0))
    replica.reported(report(1), 2.0)
    assert replica.others == 0
    assert replica.requests(0.0, 0.0) == 3


def test_others_come_and_go_as_ours_do_but_are_never_fewer_than_none() -> None:
    replica, ours = silent(), [sent(1.0) for _ in range(4)]
    for one in ours:
        replica.came(one)
    replica.reported(report(10), 2.0)
    replica.came(sent(3.0))
    assert replica.requests(ratio=2.0, usual=0.0) == 5 + 6 + 2
    for one in ours:
        replica.went(one, 4.0)
    assert replica.requests(ratio=2.0, usual=0.0) == 1 + 0


def test_a_replica_that_has_said_nothing_has_as_many_of_others_as_is_usual() -> None:
    replica = silent()
    replica.came(sent(1.0))
    assert replica.requests(ratio=9.0, usual=20.0) == 21


def test_prefill_is_what_was_reported_and_what_was_sent_since() -> None:
    replica, before, after = silent(), sent(1.0, 10_000), sent(3.0, 300)
    replica.came(before)
    assert replica.prefill_tokens(0.0) == 10_000
    replica.reported(report(1, tokens=700), 2.0)
    replica.came(after)
    assert replica.prefill_tokens(0.0) == 700 + 300
    assert replica.prefill_tokens(ratio=2.0) == 700 + 300 + 2 * 300
    replica.went(before, 4.0)
    assert replica.prefill_tokens(0.0) == 700 + 300
    replica.went(after, 5.0)
    assert replica.prefill_tokens(0.0) == 700


def test_what_ends_between_a_report_and_its_arrival_takes_no_prefill_from_it() -> None:
    replica, before, after = silent(), sent(1.0, 100), sent(3.0, 30)
    for one in (before, after):
        replica.came(one)
    replica.went(before, 4.0)
    replica.reported(report(1, tokens=50), 2.0)
    assert replica.prefill_tokens(0.0) == 50 + 30
    replica.reported(report(0, tokens=0), 5.0)
    assert replica.prefill_tokens(0.0) == 0


def test_an_engine_that_has_made_no_step_is_as_fast_as_it_was() -> None:
    replica = silent()
    replica.reported(report(1, step_ms=12.0), 1.0)
    replica.reported(report(1), 2.0)
    assert replica.step_ms == 12.0


def test_an_engine_that_is_slow_for_a_moment_is_not_thought_to_be_slow() -> None:
    replica = silent()
    for second in range(60):
        replica.reported(report(1, step_ms=12.0), float(second))
    replica.reported(report(1, step_ms=120.0), 60.0)
    assert replica.step_ms < 18
    for second in range(61, 160):
        replica.reported(report(1, step_ms=120.0), float(second))
    assert replica.step_ms > 115


def test_what_moved_before_the_oldest_report_to_come_is_forgotten_and_counts_on() -> None:
    replica, ours = silent(), sent(1.0, 100)
    replica.came(ours)
    replica.came(sent(3.0, 100))
    replica.forget(2.0)
    replica.reported(report(9), 2.5)
    assert (replica.own, replica.own_then, replica.others) == (2, 1, 8)
    replica.went(ours, 4.0)
    replica.forget(math.inf)
    assert (replica.own, replica.others) == (1, 8)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30), st.integers(0, 500)), max_size=12),
    st.integers(0, 5),
    st.integers(0, 50),
)
def test_a_report_tells_others_from_ours_however_late_it_comes(spans: list[tuple[int, int, int]], others: int, taken_at: int) -> None:
    """It counts who was there when it was taken; all has ended at 50."""
    replica = silent()
    ours = [(sent(at, tokens), at + took) for at, took, tokens in spans]
    for now in range(51):
        for one, ends_at in ours:
            if one.at == now:
                replica.came(one)
            if ends_at == now:
                replica.went(one, now)
    there = [one for one in spans if one[0] <= taken_at < one[0] + one[1]]
    replica.reported(report(len(there) + others, 7), taken_at)
    assert (replica.own, replica.own_then, replica.others) == (0, len(there), others)
    assert replica.prefill_tokens(0.0) == pytest.approx(7)
