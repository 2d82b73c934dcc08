"""How fast backlogs shrink is learnt from what is left of them."""

from __future__ import annotations

import pytest

from router.pace import ENOUGH, PrefillPace


def test_nothing_is_learnt_from_little() -> None:
    pace = PrefillPace(0.25)
    for _ in range(100):
        pace.observed(100, 100, 1.0, 200)
        pace.observed(1000, 0, 0.0, 1000)
    for _ in range(ENOUGH - 1):
        pace.observed(1000, 0, 1.0, 1000)
    assert pace.half_life_s == 0.25


@pytest.mark.parametrize("half_life_s", [0.25, 1.0, 8.0])
def test_an_even_stream_tells_the_pace(half_life_s: float) -> None:
    pace, backlog, step_s = PrefillPace(0.25), 0.0, 0.001
    for _ in range(3 * ENOUGH):
        before = backlog
        for _ in range(1000):
            backlog = backlog * 0.5 ** (step_s / half_life_s) + 2.0
        pace.observed(before, 2000.0, 1.0, backlog)
    assert pace.half_life_s == pytest.approx(half_life_s)


def test_a_fast_engine_is_never_taken_for_faster_than_assumed() -> None:
    pace = PrefillPace(0.25)
    for _ in range(ENOUGH):
        pace.observed(5000, 5000, 2.0, 0)
    assert pace.half_life_s == 0.25


def test_a_machine_that_recovers_is_fast_again() -> None:
    pace = PrefillPace(0.25)
    for _ in range(ENOUGH):
        pace.observed(5000, 0, 1.0, 5000)
    assert pace.half_life_s > 4
    for _ in range(40):
        pace.observed(5000, 0, 1.0, 100)
    assert pace.half_life_s == 0.25
