"""Where overlapping steps win, from what was measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_tests.overlap.figures import MOST_FREE, PIECES, Step, between_forwards, cells, row, rule_cells, targets, wins


def step(requests: int, each: float) -> Step:
    return Step(requests, dict.fromkeys(PIECES, each))


@given(st.integers(1, MOST_FREE), st.integers(1, 50), st.integers(1, 900))
def test_they_win_where_a_segment_with_its_free_tokens_takes_less_time(free: int, c: int, forward: int) -> None:
    synchronous, overlapping = free * (forward + c), (free + 1) * max(forward, c)
    found = wins(free, c)
    assert (overlapping < synchronous) == (found is not None and found[0] < forward < found[1])


def test_a_row_is_of_the_steps_that_all_requests_take_part_in_but_for_their_prompts() -> None:
    found = row(2, 0, [step(2, 900), step(2, 10), step(2, 20), step(1, 500)])
    assert (found["steps"], found["schedule_us"], found["c_us"]) == (2, 15, 15 * len(PIECES))


def test_tables_and_targets_speak_of_the_median_run() -> None:
    rows = [row(batch, run, [step(batch, 1), *[step(batch, each)] * 3]) for batch in (1, 8) for run, each in enumerate((250, 300, 500))]
    assert between_forwards(rows) == {1: 1200, 8: 1200}
    assert cells(rows)[1] == ["8", "300", "300", "300", "300", "1200"]
    lines = rule_cells(rows)
    assert [line[0] for line in lines] == [str(free) for free in range(1, MOST_FREE + 1)]
    assert (lines[0][1], lines[3][2]) == ("never", "0.3 to 4.8 ms")
    (target,) = targets(rows)
    assert target.value == pytest.approx(2)
    assert not target.holds
