from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, Expression, every
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.objects import MAX_NAMES, MAX_REGIONS, Objects, Region, Seen, regions_of
from grammar_service.schema.json_text import Json
from tests.unit.grammar_service.schema.algebra.membership import (
    NAMES,
    PATTERNS,
    described_objects,
    expressions,
    is_empty,
    is_in,
    is_in_any,
    objects,
    quick,
    satisfies,
    scalars,
)

dicts = st.lists(st.dictionaries(st.sampled_from([*NAMES, "c", "d"]), scalars, max_size=4), min_size=8, max_size=8)
NUMBER = At("/number")
SAMPLES: list[Json] = [None, 1, "a", "ab"]


@quick
@given(objects, objects, dicts)
def test_an_intersection_has_what_both_have(left: Objects, right: Objects, values: list[Json]) -> None:
    both = left.meet(right)
    assert [value for value in values if is_in(value, both) != (is_in(value, left) and is_in(value, right))] == []


@quick
@given(objects, dicts)
def test_tidying_changes_no_member(shape: Objects, values: list[Json]) -> None:
    tidy = shape.tidy()
    assert [value for value in values if is_in(value, tidy) != is_in(value, shape)] == []
    assert tidy is None or tidy.tidy() == tidy


@quick
@given(described_objects, dicts)
def test_a_complement_has_all_others(shape: Objects, values: list[Json]) -> None:
    outside = shape.complement()
    assert [value for value in values if is_in_any(value, [*outside]) == is_in(value, shape)] == []
    meets = [both for part in outside if (both := shape.meet(part)) is not None]
    assert [value for value in values if is_in_any(value, [*meets])] == []


@quick
@given(objects, objects, dicts)
def test_a_difference_has_what_only_the_first_has(left: Objects, right: Objects, values: list[Json]) -> None:
    try:
        outside = [part for tidy in [left.tidy()] if tidy is not None for part in tidy.without(right, is_empty)]
    except Inexact:
        assume(False)
    assert [value for value in values if is_in_any(value, [*outside]) != (is_in(value, left) and not is_in(value, right))] == []


def test_a_difference_is_known_where_a_complement_is_not() -> None:
    texts, numbers = (Objects(regions=((StringSet.everything(), asked),)) for asked in (At("/string"), NUMBER))
    for shape in (texts, Objects((("a", NUMBER),), regions=texts.regions)):
        with pytest.raises(Inexact):
            shape.complement()
    assert texts.without(texts, is_empty) == []
    assert texts.without(numbers, is_empty) == [Objects(regions=texts.regions, least=1)]
    names = tuple((name, ANYTHING) for name in "abcdefgh")
    closed = ((StringSet.everything(), NOTHING),)
    left, right = Objects(names, closed), Objects((*names[1:], ("z", ANYTHING)), closed)
    assert left.without(right, is_empty) == [Objects(names, closed, required=("a",))]


@quick
@given(described_objects, dicts)
def test_the_complement_of_a_complement_is_the_set(shape: Objects, values: list[Json]) -> None:
    again: list[Objects | None] = [Objects()]
    for part in shape.complement():
        again = [both.meet(outside) for both in again if both is not None for outside in part.complement()]
    assert [value for value in values if any(is_in(value, part) for part in again) != is_in(value, shape)] == []


@quick
@given(st.lists(st.tuples(st.sampled_from(PATTERNS), expressions), max_size=3), expressions, st.sampled_from([*NAMES, "", "c", "bb", "ba"]))
def test_each_name_is_in_one_region_that_asks_what_its_patterns_do(
    patterns: list[tuple[str, Expression]], rest: Expression, name: str
) -> None:
    regions = regions_of([(StringSet.of_pattern(text), asked) for text, asked in patterns], rest)
    matching = [asked for text, asked in patterns if name in StringSet.of_pattern(text)]
    [asked] = [expression for names, expression in regions if name in names]
    wanted = every(*matching) if matching else rest
    assert [satisfies(value, asked) for value in SAMPLES] == [satisfies(value, wanted) for value in SAMPLES]


def test_some_property_of_a_kind_is_not_described() -> None:
    with pytest.raises(Inexact, match="whatever its name"):
        Objects(regions=((StringSet.everything(), NUMBER),)).complement()


def test_bounds_on_names_and_kinds_of_names() -> None:
    many = Objects(tuple((f"n{index}", NUMBER) for index in range(MAX_NAMES + 1)))
    with pytest.raises(Inexact, match=f"more than {MAX_NAMES}"):
        many.meet(Objects())
    patterns: list[Region] = [(StringSet.of_pattern(f"{index}"), At(f"/{index}")) for index in range(4)]
    with pytest.raises(Inexact, match=f"more than {MAX_REGIONS}"):
        regions_of(patterns, NOTHING)


def test_what_has_been_evaluated_adds_up() -> None:
    seen = Seen(frozenset("a")).union(Seen(others=StringSet.of_pattern("^b"))).union(Seen(others=StringSet.of_pattern("^c")))
    assert [name for name in ("a", "ab", "b", "cc", "d") if name in seen] == ["a", "b", "cc"]
    assert Objects().meet(Objects(seen=seen)) == Objects(seen=seen)
    assert every() == ANYTHING
