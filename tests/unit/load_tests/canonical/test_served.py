"""What is made of the rows of canonical and plain requests."""

from __future__ import annotations

from deployments.reporting.report import Row
from load_tests.canonical.served import CANONICAL, PLAIN, WORKLOADS, targets

ANEW: Row = {"encoded": 500, "canonical": 499, "fallbacks": 2, "failed": 1}


def cells(rates: dict[str, list[float]]) -> list[Row]:
    return [
        {"workload": workload, "turn": turn, "side": side, "requests_per_s": rate, "failed": 0}
        for workload in WORKLOADS
        for side, found in rates.items()
        for turn, rate in enumerate(found)
    ]


def test_ratios_are_of_one_turn_and_of_these_the_median_counts() -> None:
    found = list(targets([*cells({PLAIN: [100, 50, 10], CANONICAL: [90, 48, 20]}), ANEW]))
    assert [one.value for one in found[: len(WORKLOADS)]] == [0.96] * len(WORKLOADS)
    assert all(one.holds for one in found[: len(WORKLOADS)])


def test_each_answer_that_is_not_canonical_counts() -> None:
    found = list(targets([*cells({PLAIN: [1.0], CANONICAL: [0.9]}), ANEW]))[len(WORKLOADS) :]
    assert [one.value for one in found] == [1, 2, 1]
    assert not any(one.holds for one in found)
