"""A group is spread over as few replicas as it takes, by what they can take."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from router.dividing import Spare, divide

NEEDS = st.lists(st.integers(0, 100), max_size=30)
PLACES = st.lists(st.builds(Spare, st.integers(-10, 400), st.integers(-1, 20)), max_size=5)


def test_what_fits_on_the_first_replica_stays_together() -> None:
    assert divide([10, 10, 10], [Spare(30, 8), Spare(1000, 8)]) == [0, 0, 0]


def test_a_large_group_is_divided_in_proportion_to_what_is_spare() -> None:
    assert Counter(divide([1] * 90, [Spare(80, 90), Spare(40, 90), Spare(40, 90)])) == {0: 60, 1: 30}


def test_seats_are_a_bound_too() -> None:
    assert Counter(divide([1] * 6, [Spare(100, 2), Spare(100, 3)])) == {0: 2, 1: 3}


def test_nothing_goes_where_nothing_fits() -> None:
    assert divide([5, 1], [Spare(0, 4)]) == []
    assert divide([5, 1], [Spare(4, 0)]) == []
    assert divide([1], []) == []


@settings(max_examples=40)
@given(NEEDS, PLACES)
def test_nobody_gets_more_than_it_can_take_but_for_one_that_is_longer(needs: list[int], places: list[Spare]) -> None:
    chosen = divide(needs, places)
    assert len(chosen) <= len(needs)
    for at, place in enumerate(places):
        theirs = [need for need, one in zip(needs, chosen, strict=False) if one == at]
        assert not theirs or (len(theirs) <= place.requests and (sum(theirs) <= place.prefill_tokens or len(theirs) == 1))


@settings(max_examples=40)
@given(NEEDS, PLACES)
def test_a_place_is_used_only_when_those_before_it_are_not_enough(needs: list[int], places: list[Spare]) -> None:
    last = max(divide(needs, places), default=0)
    earlier = places[:last]
    tokens = sum(max(0, place.prefill_tokens) for place in earlier)
    seats = sum(max(0, place.requests) for place in earlier)
    assert last == 0 or tokens < sum(needs) or seats < len(needs)


def test_a_preferred_place_is_taken_as_long_as_it_has_a_part_of_its_share() -> None:
    places = [Spare(400, 99), Spare(400, 99)]
    assert divide([100] * 6, places, lambda number: (number % 2, 1 - number % 2)) == [0, 1, 0, 1, 0, 1]
    assert divide([100] * 8, places, lambda number: (1, 0)) == [1, 1, 1, 1, 0, 0, 0, 0]


def test_what_fits_into_one_place_is_not_divided_for_a_preference() -> None:
    assert divide([100] * 4, [Spare(400, 99), Spare(400, 99)], lambda number: (1, 0)) == [0] * 4
