"""Means, intervals and promises of rows."""

from __future__ import annotations

import numpy as np
import pytest

from deployments.reporting.report import Row
from load_tests.canonical.distribution.figures import WITH, WITHOUT, cells, difference, interval, of_kind, pair_cells, targets, variation


def row(kind: str, plain: float, canonical: float, another: str = "") -> Row:
    arms = {"plain": plain, "row": plain, "canonical": canonical, "spelled": 0.0}
    return {"set": kind, "pruned": 1e-6, "another_is_likeliest": another, **arms}


def test_total_variation_is_the_mass_that_has_moved() -> None:
    assert variation(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.1, 0.4])) == pytest.approx(0.2)
    assert variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1


def test_an_interval_holds_the_mean_and_narrows_with_more_sets() -> None:
    few, many = interval([0.0, 1.0] * 10), interval([0.0, 1.0] * 1000)
    assert few[0] == many[0] == 0.5
    assert few[1] < many[1] < 0.5 < many[2] < few[2]
    assert (many[2] - many[1]) == pytest.approx(2 * 1.96 * 0.5 / 2000**0.5, rel=0.1)


def test_differences_are_taken_set_by_set() -> None:
    rows = [row(WITHOUT, 0.1 * number, 0.1 * number - 0.02) for number in range(1, 9)]
    assert difference(rows, "plain", "canonical") == pytest.approx((0.02, 0.02, 0.02))
    line = next(iter(pair_cells(rows)))
    assert line[1:] == ["+0.0200", "+0.0200 to +0.0200", "8", "0"]


def test_sets_that_were_left_out_are_in_no_mean() -> None:
    rows = [row(WITH, 0.5, 0.4, "plain"), row(WITHOUT, 0.9, 0.9), {"set": WITH, "left_out": True}]
    assert of_kind(rows, WITH) == rows[:1]
    plain, _, canonical, spelled = cells(of_kind(rows, WITH))
    assert (plain[1], plain[-1], canonical[-1], spelled[-1]) == ("0.5000", "1", "0", "")


def test_harm_is_a_promise_that_is_missed() -> None:
    good = [row(kind, 0.3, 0.2) for kind in (WITH, WITHOUT) for _ in range(400)]
    assert all(target.holds for target in targets(good))
    harmed = [row(kind, 0.2, 0.3 if kind == WITH else 0.1) for kind in (WITH, WITHOUT) for _ in range(400)]
    assert [target.holds for target in targets(harmed)] == [True, False, True, True, True]
    assert not any(target.holds for target in targets([]))
