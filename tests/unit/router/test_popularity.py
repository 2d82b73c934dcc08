"""What is asked for often is known to be, and forgotten again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from router.popularity import REMEMBERED, Popularity


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def asked(popularity: Popularity, **counts: int) -> None:
    for key, count in counts.items():
        for _ in range(count):
            popularity.asked(key)


def test_a_share_is_that_of_all_requests_less_what_may_be_chance() -> None:
    popularity = Popularity(Clock())
    asked(popularity, hot=400, warm=100)
    for _ in range(500):
        popularity.asked("")
    assert popularity.share("hot") == pytest.approx((400 - 40) / 1000)
    assert popularity.share("warm") == pytest.approx((100 - 20) / 1000)
    assert popularity.share("unknown") == popularity.share("") == 0


def test_a_few_requests_are_no_sign_of_popularity() -> None:
    popularity = Popularity(Clock())
    assert popularity.share("key") == 0
    asked(popularity, key=4)
    assert popularity.share("key") == 0


def test_what_was_asked_for_long_ago_counts_no_more() -> None:
    clock = Clock()
    popularity = Popularity(clock, half_life_s=10.0)
    asked(popularity, before=400)
    clock.now += 60.0
    asked(popularity, now=400)
    assert popularity.share("before") < 0.01
    assert popularity.share("now") > 0.8


def test_time_that_goes_on_for_ever_or_backwards_is_no_trouble() -> None:
    clock = Clock()
    popularity = Popularity(clock, half_life_s=0.001)
    for step in (0.0, 1.0, 1e9, -1e12, 1.0):
        clock.now += step
        asked(popularity, key=100)
        assert 0 <= popularity.share("key") <= 1


def test_of_many_keys_the_popular_ones_are_remembered() -> None:
    popularity = Popularity(Clock())
    asked(popularity, hot=100)
    for number in range(REMEMBERED + 1):
        popularity.asked(str(number))
    assert len(popularity._counts) <= REMEMBERED
    assert popularity.share("hot") > 0
