from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.algebra.strings import Strings
from tests.unit.grammar_service.schema.algebra.membership import is_in, is_in_any, quick, strings

TEXTS = ["".join(chars) for length in range(5) for chars in product("ab", repeat=length)]


def members(shape: Strings | None) -> list[str]:
    return [text for text in TEXTS if is_in(text, shape)]


@quick
@given(strings, strings)
def test_an_intersection_has_what_both_have(left: Strings, right: Strings) -> None:
    both = left.meet(right)
    assert members(both) == [text for text in members(left) if is_in(text, right)]
    assert members(right.meet(left)) == members(both)


@quick
@given(strings)
def test_a_complement_has_all_others(shape: Strings) -> None:
    outside = shape.complement()
    assert [text for text in TEXTS if is_in_any(text, [*outside])] == [text for text in TEXTS if not is_in(text, shape)]


@quick
@given(strings, strings)
def test_a_difference_has_what_only_the_first_has(left: Strings, right: Strings) -> None:
    outside = left.without(right)
    assert [text for text in TEXTS if is_in_any(text, [*outside])] == [text for text in members(left) if not is_in(text, right)]


def test_strings_of_a_format_are_taken_from_those_of_the_same() -> None:
    date = Pattern.of_format("date", Effort(100_000))
    assert Strings(patterns=(date,)).without(Strings(patterns=(date,), least=1)) == [Strings(patterns=(date,), most=0)]


@quick
@given(strings)
def test_a_set_meets_its_complement_nowhere(shape: Strings) -> None:
    both = [shape.meet(part) for part in shape.complement()]
    assert [part for part in both if part is not None and not part.language().is_empty] == []


@quick
@given(strings)
def test_the_complement_of_a_complement_is_the_set(shape: Strings) -> None:
    again: list[Strings | None] = [Strings()]
    for part in shape.complement():
        again = [both.meet(outside) for both in again if both is not None for outside in part.complement()]
    assert [text for text in TEXTS if any(is_in(text, part) for part in again)] == members(shape)


@quick
@given(strings)
def test_the_language_and_the_schema_have_the_same_members(shape: Strings) -> None:
    assert [text for text in TEXTS if text in shape.language()] == members(shape)
    try:
        schema = shape.to_schema()
    except UnsupportedGrammar:
        assert shape.language_of_patterns().is_empty
        return
    assert isinstance(schema, dict)
    validator = Draft202012Validator(schema)
    assert [text for text in TEXTS if validator.is_valid(text)] == members(shape)


def test_a_format_is_a_pattern() -> None:
    date = Strings(patterns=(Pattern.of_format("date", Effort(100_000)),))
    assert date.to_schema() == {"type": "string", "format": "date"}
    assert date.meet(Strings(values=("2024-02-29", "2023-02-29"))) == Strings(values=("2024-02-29",))
    [outside] = date.complement()
    assert "2023-02-29" in outside.language()
    assert "2024-02-29" not in outside.language()


def test_of_what_may_be_of_a_format_nothing_is_inside_and_nothing_outside() -> None:
    time = Strings(patterns=(Pattern.of_format("time", Effort(100_000)),))
    [outside] = time.complement()
    leap = "00:59:60+01:00"
    assert leap not in time.language()
    assert leap not in outside.language()
    for shape in (time, outside):
        with pytest.raises(Inexact, match="format"):
            shape.meet(Strings(values=(leap,)))
    [again] = outside.complement()
    assert again == time


def test_dozens_of_words_that_must_not_be_take_little_effort() -> None:
    effort = Effort(100_000)
    words = [
        f"^{''.join(f'[{char}{char.upper()}]' for char in word)}$" for word in "and as bool break case class for from if in int try".split()
    ]
    shape = Strings(patterns=(Pattern("^[a-zA-Z_]+$", effort),), avoided=tuple(Pattern(word, effort) for word in words))
    schema = shape.to_schema()
    assert isinstance(schema, dict)
    validator = Draft202012Validator(schema)
    assert [text for text in ("class", "IF", "iF", "1") if validator.is_valid(text)] == []
    assert [text for text in ("classes", "i", "Ints") if not validator.is_valid(text)] == []


def test_a_large_pattern_that_meets_no_other_is_not_combined() -> None:
    effort = Effort(300_000)
    large = Pattern(f"^{'|'.join(f'(:?[0-9a-f]{{1,4}}){{{count}}}::?([0-9a-f]{{1,4}}:?){{{8 - count}}}' for count in range(8))}$", effort)
    variable = Pattern(r"^\$\{[a-z]+\}$", effort)
    assert Strings(patterns=(variable,), avoided=(large,)).to_schema() == variable.to_schema()


def test_long_counts_take_little_effort() -> None:
    effort = Effort(100_000)
    assert Pattern("^[a-z][a-z0-9]{0,254}$", effort).strings.complement().complement() == Pattern("^[a-z][a-z0-9]{0,254}$", effort).strings
