from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import EMPTY, EVERYTHING, FULL, MAX_ALTERNATIVES, NONE, Alternatives, Cases, Shape, known
from grammar_service.schema.algebra.inexact import Inexact, Reason
from grammar_service.schema.algebra.numbers import Bound, Numbers
from grammar_service.schema.json_text import Json
from grammar_service.schema.normal_form.disjoint import type_of
from tests.unit.grammar_service.schema.algebra import membership
from tests.unit.grammar_service.schema.algebra.membership import is_in_any, quick, values

_shapes: dict[str, st.SearchStrategy[Shape]] = {
    "number": membership.bounded_numbers,
    "string": membership.strings,
    "array": membership.described_arrays,
    "object": membership.described_objects,
}


@st.composite
def some_cases(draw: st.DrawFn) -> Cases:
    kind = draw(st.sampled_from(sorted(_shapes)))
    alternatives = Alternatives(tuple(draw(st.lists(_shapes[kind], max_size=2))))
    cases = Cases.about(kind, alternatives) if draw(st.booleans()) else Cases({kind: alternatives})
    return cases.join(Cases.only("boolean", draw(membership.symbols.filter(lambda symbols: None not in symbols.allowed))))


samples = st.lists(values, min_size=8, max_size=8)
UNKNOWN = Alternatives(reason=Reason("nobody knows"))


def holds(cases: Cases, value: Json) -> bool:
    """Raises Inexact: it is not known."""
    return is_in_any(value, [*cases.of(type_of(value)).shapes])


def is_known(cases: Cases) -> bool:
    return all(cases.of(kind).reason is None for kind in FULL)


def effort() -> Effort:
    return Effort(1_000_000)


@quick
@given(some_cases(), some_cases(), samples)
def test_intersection_and_union_are_those_of_sets(left: Cases, right: Cases, some: list[Json]) -> None:
    both, either, beside = left.meet(right, effort()), left.join(right), left.beside(right)
    assume(is_known(both))
    assert [value for value in some if holds(both, value) != (holds(left, value) and holds(right, value))] == []
    assert [value for value in some if holds(either, value) != (holds(left, value) or holds(right, value))] == []
    assert [value for value in some if holds(beside, value) != holds(either, value)] == []


@quick
@given(some_cases(), samples)
def test_a_complement_has_all_others_and_meets_its_set_nowhere(cases: Cases, some: list[Json]) -> None:
    outside = cases.complement(effort())
    assume(is_known(outside))
    assert [value for value in some if holds(outside, value) == holds(cases, value)] == []
    assert [value for value in some if holds(cases.meet(outside, effort()), value)] == []
    assert all(holds(cases.join(outside), value) for value in some)


@quick
@given(some_cases(), some_cases(), samples)
def test_a_difference_has_what_only_the_first_has(left: Cases, right: Cases, some: list[Json]) -> None:
    only = left.minus(right, effort())
    assume(is_known(only))
    assert [value for value in some if holds(only, value) != (holds(left, value) and not holds(right, value))] == []


@quick
@given(some_cases(), samples)
def test_the_complement_of_a_complement_is_the_set(cases: Cases, some: list[Json]) -> None:
    again = cases.complement(effort()).complement(effort())
    assume(is_known(again))
    assert [value for value in some if holds(again, value) != holds(cases, value)] == []


@quick
@given(some_cases())
def test_everything_and_nothing_are_neutral(cases: Cases) -> None:
    equal = Cases({kind: Alternatives(found.shapes) for kind, found in FULL.items()})
    met = [both for whole in (EVERYTHING, equal) for both in (cases.meet(whole, effort()), whole.meet(cases, effort()))]
    for same in [*met, cases.join(NONE)]:
        assert [kind for kind in FULL if same.of(kind) != cases.of(kind)] == []
    assert cases.meet(NONE, effort()).is_empty
    assert cases.join(EVERYTHING) == EVERYTHING
    assert EVERYTHING.complement(effort()).is_empty
    assert NONE.complement(effort()) == EVERYTHING


def test_what_is_not_known_counts_only_where_it_is_asked() -> None:
    unknown = Cases.about("number", UNKNOWN)
    assert unknown.meet(Cases.only("number"), effort()).is_empty
    assert unknown.join(EVERYTHING) == EVERYTHING
    some = Cases.only("number", Numbers(whole=True))
    for told in (unknown.meet(some, effort()), unknown.join(some), unknown.beside(some), unknown.complement(effort())):
        assert told.of("string").reason is None
        with pytest.raises(Inexact, match="nobody knows"):
            _ = told.of("number").shapes


def test_the_first_to_say_where_a_reason_lies_is_right() -> None:
    unknown = Cases.about("number", UNKNOWN)
    assert unknown.blaming("/a", "not").blaming("", "properties").of("number").reason == Reason("nobody knows", "/a/not")
    assert EVERYTHING.blaming("", "not") is EVERYTHING


def test_what_is_inexact_becomes_the_reason() -> None:
    def fail() -> Alternatives:
        raise UnsupportedGrammar("too large", "/pattern")

    assert known(fail).reason == Reason("too large", "/pattern")
    assert Cases.only("array", Arrays(unique=True)).complement(effort()).of("array").reason is not None


def test_unions_and_work_are_bounded() -> None:
    many = Cases.only("number", *(Numbers(low=Bound(index, False)) for index in range(MAX_ALTERNATIVES)))
    one_more = Cases.only("number", Numbers(low=Bound(-1, True)))
    assert many.join(one_more).of("number").reason == Reason("the schema has too many cases")
    assert many.meet(one_more, Effort(10)).of("number").reason is not None


def test_filtering_keeps_what_is_not_known() -> None:
    cases = Cases({"number": UNKNOWN, "array": Alternatives((Arrays(), Arrays(least=2)))})
    kept = cases.filtered(lambda shape: isinstance(shape, Arrays) and shape.least == 0)
    assert kept == Cases({"number": UNKNOWN, "array": Alternatives((Arrays(),))})
    assert EMPTY.is_empty
    assert not UNKNOWN.is_empty
