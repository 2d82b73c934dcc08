from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammar_service.schema.algebra.arrays import MAX_PREFIX, Arrays, Contained
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, negated
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.json_text import Json
from tests.unit.grammar_service.schema.algebra.membership import arrays, described_arrays, is_empty, is_in, is_in_any, quick, scalars

lists = st.lists(st.lists(scalars, max_size=4), min_size=8, max_size=8)
NUMBER, TEXT = At("/number"), At("/string")


@quick
@given(arrays, arrays, lists)
def test_an_intersection_has_what_both_have(left: Arrays, right: Arrays, values: list[Json]) -> None:
    both = left.meet(right)
    assert [value for value in values if is_in(value, both) != (is_in(value, left) and is_in(value, right))] == []


@quick
@given(arrays, lists)
def test_tidying_changes_no_member(shape: Arrays, values: list[Json]) -> None:
    tidy = shape.tidy()
    assert [value for value in values if is_in(value, tidy) != is_in(value, shape)] == []
    assert tidy is None or tidy.tidy() == tidy


@quick
@given(described_arrays, lists)
def test_a_complement_has_all_others(shape: Arrays, values: list[Json]) -> None:
    outside = shape.complement()
    assert [value for value in values if is_in_any(value, [*outside]) == is_in(value, shape)] == []
    meets = [both for part in outside if (both := shape.meet(part)) is not None]
    assert [value for value in values if is_in_any(value, [*meets])] == []


@quick
@given(arrays, arrays, lists)
def test_a_difference_has_what_only_the_first_has(left: Arrays, right: Arrays, values: list[Json]) -> None:
    shape, other = left.tidy(), right.tidy()
    try:
        outside = [] if shape is None else [shape] if other is None else shape.without(other, is_empty)
    except Inexact:
        assume(False)
    assert [value for value in values if is_in_any(value, [*outside]) != (is_in(value, left) and not is_in(value, right))] == []


def test_a_difference_is_known_where_a_complement_is_not() -> None:
    texts, numbers = Arrays(rest=TEXT), Arrays(rest=NUMBER)
    assert texts.without(texts, is_empty) == []
    assert texts.without(numbers, is_empty) == [Arrays(rest=TEXT, least=1)]
    assert texts.complement() == [Arrays(contained=(Contained(negated(TEXT), 1, None),))]
    assert Arrays(unique=True, least=2).without(Arrays(unique=True, least=3), is_empty) == [Arrays(unique=True, least=2, most=2)]


@quick
@given(described_arrays.map(lambda shape: replace(shape, contained=())), lists)
def test_the_complement_of_a_complement_is_the_set(shape: Arrays, values: list[Json]) -> None:
    again: list[Arrays | None] = [Arrays()]
    for part in shape.complement():
        again = [both.meet(outside) for both in again if both is not None for outside in part.complement()]
    assert [value for value in values if any(is_in(value, part) for part in again) != is_in(value, shape)] == []


def test_arrays_with_equal_items_are_not_described() -> None:
    with pytest.raises(Inexact, match="cannot be described"):
        Arrays(unique=True).complement()


def test_what_is_counted_is_described() -> None:
    one, few = Contained(NUMBER, 1, None, 1), Contained(NUMBER, 2, 3)
    assert Arrays((NUMBER,), rest=TEXT).complement()[-1] == Arrays(contained=(Contained(negated(TEXT), 1, None, 1),))
    assert Arrays(contained=(one,)).complement() == [Arrays((ANYTHING,), rest=negated(NUMBER))]
    assert Arrays(contained=(few,)).complement() == [
        Arrays(contained=(Contained(NUMBER, 0, 1),)),
        Arrays(contained=(Contained(NUMBER, 4, None),)),
    ]


def test_an_impossible_item_bounds_the_length() -> None:
    assert Arrays((NUMBER, NOTHING, NUMBER), ANYTHING).tidy() == Arrays((NUMBER,), NOTHING, 0, 1)
    assert Arrays(rest=NOTHING, least=1).tidy() is None


def test_long_prefixes_are_not_combined() -> None:
    long = Arrays((NUMBER,) * (MAX_PREFIX + 1))
    with pytest.raises(Inexact, match="prefixItems"):
        long.meet(Arrays())
