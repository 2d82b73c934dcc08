from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from jsonschema import Draft202012Validator

from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.numbers import Bound, Numbers
from tests.unit.grammar_service.schema.algebra.membership import bounded_numbers, is_in_any, numbers, quick

SOME = [-3, -1.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4.5, 6]


def members(shape: Numbers | None) -> list[float]:
    return [] if shape is None else [number for number in SOME if shape.holds(number)]


@quick
@given(numbers, numbers)
def test_an_intersection_has_what_both_have(left: Numbers, right: Numbers) -> None:
    both = left.meet(right)
    assert members(both) == [number for number in members(left) if right.holds(number)]
    assert members(right.meet(left)) == members(both)


@quick
@given(numbers)
def test_tidying_changes_no_member(shape: Numbers) -> None:
    tidy = shape.tidy()
    assert members(tidy) == members(shape)
    assert tidy is None or tidy.tidy() == tidy


@quick
@given(bounded_numbers)
def test_a_complement_has_all_others_and_meets_its_set_nowhere(shape: Numbers) -> None:
    outside = shape.complement()
    assert [number for number in SOME if is_in_any(number, [*outside])] == [number for number in SOME if not shape.holds(number)]
    assert [shape.meet(part) for part in outside if shape.tidy() is not None] == [None for _ in outside if shape.tidy() is not None]


@quick
@given(numbers, numbers)
def test_a_difference_has_what_only_the_first_has(left: Numbers, right: Numbers) -> None:
    try:
        outside = left.without(right)
    except Inexact:
        assume(False)
    assert [number for number in SOME if is_in_any(number, [*outside])] == [number for number in members(left) if not right.holds(number)]


def test_whole_numbers_are_taken_from_whole_ones() -> None:
    assert Numbers(whole=True).without(Numbers(low=Bound(3, False), whole=True)) == [Numbers(high=Bound(2, False), whole=True)]


@quick
@given(bounded_numbers.filter(lambda shape: (shape.low is None) != (shape.high is None)))
def test_the_complement_of_a_ray_is_a_ray_and_its_complement_the_first(shape: Numbers) -> None:
    [outside] = shape.complement()
    assert outside.complement() == [shape]


@quick
@given(numbers)
def test_the_schema_of_a_set_validates_its_members(shape: Numbers) -> None:
    validator = Draft202012Validator(shape.to_schema())
    assert [number for number in SOME if validator.is_valid(number)] == members(shape)


@pytest.mark.parametrize("shape", [Numbers(whole=True), Numbers(step=Fraction(2))])
def test_what_is_not_of_a_kind_is_not_described(shape: Numbers) -> None:
    with pytest.raises(Inexact, match="not whole, or not multiples"):
        shape.complement()


def test_a_single_number_is_seen() -> None:
    assert Numbers(Bound(2, False), Bound(2, False), True).only() == 2
    assert Numbers(Bound(2, False), Bound(2, False), step=Fraction(3)).only() is None
    assert Numbers(Bound(1, False), Bound(2, False)).only() is None


def test_decimals_are_what_the_text_says() -> None:
    tenth = Numbers(step=Fraction(1, 10))
    assert tenth.holds(0.3)
    assert Numbers(step=Fraction(3, 10)).meet(tenth) == Numbers(step=Fraction(3, 10))
