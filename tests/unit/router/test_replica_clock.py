"""Clocks that are set while they run: reports count again soon, whichever way, and late ones are late all the same."""

from __future__ import annotations

import pytest

from router.parameters import Parameters
from router.replica_clock import ODD, ReplicaClock

STALE_S = Parameters().stale_s
HOUR = 3600.0


def read(clock: ReplicaClock, taken_at: list[float], now: list[float]) -> list[float | None]:
    return [clock.ours(taken, at, STALE_S) for taken, at in zip(taken_at, now, strict=True)]


@pytest.mark.parametrize("behind_s", [HOUR, STALE_S, 40 * HOUR])
def test_a_clock_that_was_set_back_is_read_by_the_difference(behind_s: float) -> None:
    clock, now = ReplicaClock(), [1000.0 + second for second in range(10)]
    assert clock.ours(999.5, 1000.0, STALE_S) == 999.5
    found = read(clock, [at - behind_s for at in now], now)
    assert found == [None] * (ODD - 1) + now[ODD - 1 :]


def test_set_right_again_it_is_read_as_it_is() -> None:
    clock, now = ReplicaClock(), [1000.0 + second for second in range(10)]
    read(clock, [at - HOUR for at in now], now)
    assert clock.ours(1009.25, 1010.0, STALE_S) == 1009.25
    assert clock.ours(1011.0 - HOUR, 1011.0, STALE_S) is None


def test_an_old_report_after_the_difference_is_known_is_stale() -> None:
    clock, now = ReplicaClock(), [1000.0 + second for second in range(ODD)]
    read(clock, [at - HOUR for at in now], now)
    assert clock.ours(1010.0 - HOUR, 1010.0 + STALE_S, STALE_S) is None


def test_reports_that_were_held_up_and_come_together_are_stale() -> None:
    clock = ReplicaClock()
    assert read(clock, [900.0 + second for second in range(20)], [1000.0] * 20) == [None] * 20


def test_one_report_that_is_told_again_and_again_is_stale() -> None:
    clock = ReplicaClock()
    assert read(clock, [900.0] * 20, [1000.0 + 0.1 * number for number in range(20)]) == [None] * 20
