"""What is asked for often is known to be, and forgotten again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.popularity import Popularity
from tests.unit.router.clock import Clock

HALF_LIFE_S = 10.0


def asked(popularity: Popularity, **counts: int) -> None:
    for key, count in counts.items():
        for _ in range(count):
            popularity.asked(key)


def test_a_share_is_that_of_all_requests() -> None:
    popularity = Popularity(Clock(), HALF_LIFE_S)
    asked(popularity, hot=400, warm=100)
    for _ in range(500):
        popularity.asked(None)
    assert popularity.share("hot") == pytest.approx(0.4)
    assert popularity.share("warm") == pytest.approx(0.1)
    assert popularity.share("unknown") == 0


def test_what_was_asked_for_a_half_life_ago_counts_half() -> None:
    clock = Clock()
    popularity = Popularity(clock, HALF_LIFE_S)
    asked(popularity, before=400)
    clock.now += HALF_LIFE_S
    asked(popularity, now=200)
    assert popularity.share("before") == popularity.share("now") == pytest.approx(0.5)


def test_what_was_asked_for_long_ago_is_forgotten_however_quiet_it_was_since() -> None:
    clock = Clock()
    popularity = Popularity(clock, HALF_LIFE_S)
    asked(popularity, before=400)
    clock.now += 10 * HALF_LIFE_S
    asked(popularity, now=400)
    assert popularity.share("before") == 0
    assert popularity.share("now") > 0.8


def test_a_grammar_that_nobody_asks_for_any_more_takes_no_memory() -> None:
    clock = Clock()
    popularity = Popularity(clock, HALF_LIFE_S)
    for number in range(100):
        popularity.asked(str(number))
    clock.now += HALF_LIFE_S
    popularity.asked("now")
    assert set(popularity._counts) == {"now"}


@given(st.lists(st.tuples(st.floats(-1e12, 1e12), st.sampled_from([None, "x", "y"]), st.integers(1, 50)), max_size=20))
def test_shares_are_shares_wherever_the_clock_jumps(steps: list[tuple[float, str | None, int]]) -> None:
    clock = Clock()
    popularity = Popularity(clock, HALF_LIFE_S)
    for step, key, count in steps:
        clock.now += step
        for _ in range(count):
            popularity.asked(key)
        assert 0 <= popularity.share("x") + popularity.share("y") <= 1
        assert popularity._total == popularity._counts.total()


def test_a_clock_that_is_set_back_does_not_keep_what_was_popular() -> None:
    clock = Clock()
    popularity = Popularity(clock, HALF_LIFE_S)
    asked(popularity, before=400)
    for _ in range(10):
        clock.now -= HALF_LIFE_S
        asked(popularity, now=100)
    assert popularity.share("before") == 0
