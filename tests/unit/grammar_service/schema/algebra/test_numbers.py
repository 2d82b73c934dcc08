from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from jsonschema import Draft202012Validator

from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.numbers import MAX_GAPS, Bound, Numbers
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
def test_the_schemas_of_a_set_validate_its_members(shape: Numbers) -> None:
    try:
        validator = Draft202012Validator({"anyOf": [*shape.to_schemas(), False]})
    except Inexact:
        assume(False)
    assert [number for number in SOME if validator.is_valid(number)] == members(shape)


def test_what_is_no_multiple_lies_between_multiples() -> None:
    [part] = Numbers(step=Fraction(3)).complement()
    assert part == Numbers(avoided=(Fraction(3),))
    assert part.complement() == [Numbers(whole=True, step=Fraction(3))]
    assert part.meet(Numbers(whole=True, step=Fraction(6))) is None
    [near] = Numbers(whole=True, low=Bound(0, False), high=Bound(7, False)).without(Numbers(step=Fraction(3)))
    assert [(schema["minimum"], schema["maximum"]) for schema in near.to_schemas() if isinstance(schema, dict)] == [(1, 2), (4, 5), (7, 7)]
    with pytest.raises(Inexact, match="only between near bounds"):
        part.to_schemas()


def test_numbers_that_are_not_whole_are_written_next_to_zero_or_to_a_bound() -> None:
    [part] = Numbers(whole=True).complement()
    assert len(part.to_schemas()) == MAX_GAPS
    far = part.meet(Numbers(low=Bound(99.5, False)))
    assert far is not None
    assert far.to_schemas()[0] == {"type": "number", "minimum": 99.5, "exclusiveMaximum": 100}


@pytest.mark.parametrize(
    "shape",
    [
        Numbers(Bound(2, False), Bound(2, False), avoided=(Fraction(1),)),
        Numbers(Bound(1, False), Bound(2, False), True, Fraction(3)),
        Numbers(Bound(3, True), Bound(6, True), step=Fraction(3)),
        Numbers(step=Fraction(6), avoided=(Fraction(3),)),
    ],
)
def test_bounds_between_which_nothing_is_left_are_seen(shape: Numbers) -> None:
    assert shape.tidy() is None


def test_a_single_number_is_seen() -> None:
    assert Numbers(Bound(2, False), Bound(2, False), True).only() == 2
    assert Numbers(Bound(2, False), Bound(2, False), step=Fraction(3)).only() is None
    assert Numbers(Bound(1, False), Bound(2, False)).only() is None


def test_decimals_are_what_the_text_says() -> None:
    tenth = Numbers(step=Fraction(1, 10))
    assert tenth.holds(0.3)
    assert Numbers(step=Fraction(3, 10)).meet(tenth) == Numbers(step=Fraction(3, 10))
