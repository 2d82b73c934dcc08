"""Arrivals are as many as they should be, when they should be, and always the same ones."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from load_tests.load.arrivals import arrivals
from load_tests.load.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_arrivals_follow_the_rate_of_their_scenario(scenario: Scenario) -> None:
    seconds, usual, parts = 2000.0, 5.0, 10
    found = arrivals(scenario.rate, scenario.peak, usual, seconds, Random(1))
    assert found == sorted(found)
    for part in range(parts):
        expected = usual * seconds / parts * scenario.rate((part + 0.5) / parts)
        counted = sum(part <= at / seconds * parts < part + 1 for at in found)
        assert counted == pytest.approx(expected, abs=5 * expected**0.5)


def test_gaps_do_not_depend_on_what_came_before() -> None:
    found = arrivals(lambda _: 1.0, 1.0, 10.0, 2000.0, Random(2))
    gaps = [later - earlier for earlier, later in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.05)  # as of an exponential distribution


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_scenario_asks_for_the_same_at_every_run(scenario: Scenario) -> None:
    first, second = (([scenario.body(number, random) for number in range(6)]) for random in (Random(3), Random(3)))
    assert first == second
    assert all(body["messages"] for body in first)
