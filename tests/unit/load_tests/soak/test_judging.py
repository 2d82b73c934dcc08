"""What grows is found, and noise is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from load_tests.soak.judging import BLOCKS, NOISE, Trend, blocks, theil_sen, trends
from load_tests.soak.sampling import FILES, MEMORY, ZOMBIES, Sample

AFTER, ALL, PERIOD = 8_000, 20_000, 50
SERIES = f"{MEMORY}: ingress"
QUIET = NOISE[MEMORY]


def found(name: str, values: np.ndarray) -> Trend:
    samples = [Sample(float(at), PERIOD * at, {name: float(value)}) for at, value in enumerate(values)]
    (trend,) = trends(samples, AFTER)
    return trend


def heap(seed: int, growth: float = 0.0) -> np.ndarray:
    """Of 400 MiB: steps that are given back, spikes, and a warm-up of 100 MiB."""
    random, at = np.random.default_rng(seed), np.arange(0, ALL + 1, PERIOD)
    steps = 2 * np.repeat(random.integers(0, 3, len(at) // 20 + 1), 20)[: len(at)]
    spikes = 30 * (random.random(len(at)) < 0.03)
    return 400 + 100 * (1 - np.exp(-at / 1_000)) + steps + spikes + random.normal(0, 0.5, len(at)) + growth * at / 1_000


@pytest.mark.parametrize("seed", range(20))
def test_a_heap_with_steps_and_spikes_does_not_grow(seed: int) -> None:
    assert not found(SERIES, heap(seed)).grows


@pytest.mark.parametrize("seed", range(20))
def test_a_kibibyte_a_request_is_found_below_steps_and_spikes(seed: int) -> None:
    trend = found(SERIES, heap(seed, growth=1.0))
    assert trend.grows
    assert trend.low <= trend.slope <= trend.high
    assert trend.slope == pytest.approx(1.0, abs=0.5)


def test_one_file_more_in_a_thousand_requests_is_found() -> None:
    assert found(f"{FILES}: ingress", 40 + np.arange(0, ALL + 1, PERIOD) // 1_000).grows
    assert found(ZOMBIES, np.arange(0, ALL + 1, PERIOD) // 1_000).grows


def test_what_shrinks_or_stands_still_does_not_grow() -> None:
    assert not found(ZOMBIES, np.zeros(ALL // PERIOD + 1)).grows
    assert not found(SERIES, 500 - np.arange(0, ALL + 1, PERIOD) / 1_000).grows


def test_growth_within_what_is_noise_is_told_but_does_not_count() -> None:
    trend = found(SERIES, 400 + QUIET / 2 * np.arange(0, ALL + 1, PERIOD) / 1_000)
    assert trend.low > 0
    assert not trend.grows


def test_what_came_before_all_was_warm_does_not_count() -> None:
    at = np.arange(0, ALL + 1, PERIOD)
    assert not found(SERIES, np.minimum(at, AFTER) / 100.0).grows


def test_a_series_that_begins_late_was_nothing_before() -> None:
    samples = [Sample(0.0, AFTER, {}), Sample(1.0, AFTER + 1, {ZOMBIES: 1.0})]
    assert [trend.series for trend in trends(samples, AFTER)] == [ZOMBIES]


def test_the_interval_is_wide_where_little_is_known() -> None:
    assert theil_sen(np.array([1.0]), np.array([5.0])) == (-math.inf, 0.0, math.inf)
    low, slope, high = theil_sen(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 4.0]))
    assert (low, slope, high) == (-math.inf, 2.0, math.inf)


def test_the_interval_holds_the_slope_as_often_as_it_says() -> None:
    random, x = np.random.default_rng(11), np.linspace(0.0, 1.0, BLOCKS)
    inside = 0
    for _ in range(400):
        low, _, high = theil_sen(x, 3 * x + random.normal(0, 0.2, len(x)), confidence=0.9)
        inside += low <= 3 <= high
    assert 0.85 < inside / 400 < 0.95


def test_blocks_are_medians_of_equal_parts() -> None:
    x, y = blocks(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 9.0, 2.0, 5.0, 5.0, 100.0]), count=2)
    assert (x.tolist(), y.tolist()) == ([1.0, 4.0], [2.0, 5.0])
