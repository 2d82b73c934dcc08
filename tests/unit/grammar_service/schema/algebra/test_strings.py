from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.algebra.inexact import Inexact
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
    assert Strings(formats=("date",)).without(Strings(formats=("date",), least=1)) == [Strings(formats=("date",), most=0)]


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


def test_a_format_is_only_passed_on() -> None:
    mail = Strings(formats=("email",))
    assert mail.meet(Strings(most=3)) == Strings(most=3, formats=("email",))
    for ask in (mail.complement, mail.language, lambda: mail.meet(Strings(values=("a",)))):
        with pytest.raises(Inexact, match="format"):
            ask()
