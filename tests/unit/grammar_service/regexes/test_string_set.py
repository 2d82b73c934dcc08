"""Sets of strings against Python's `re` on all short strings."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.other_strings import pattern_of_others
from grammar_service.regexes.string_set import Recognizer, StringSet
from grammar_service.regexes.string_set_regex import anchored_pattern

TEXTS = ["".join(chars) for length in range(5) for chars in product("abx\n", repeat=length)]
PATTERNS = [
    "",
    "^$",
    "^a*$",
    "a+",
    "x.*b",
    "^x",
    "b$",
    "^(a|b){2,3}$",
    "^a|b$",
    "^(?:ab)*x?$",
    "^a{0,2}$",
    "^a{2,}$",
    "^(a?b?){2}$",
    "[^a]",
]


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern.replace("$", r"\Z").replace(".", r"[^\n\r\u2028\u2029]"), text) is not None


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_its_complement_and_both_written_again(pattern: str) -> None:
    strings = StringSet.of_pattern(pattern)
    other = strings.complement()
    assert [text for text in TEXTS if (text in strings) != matches(pattern, text) or (text in strings) == (text in other)] == []
    for one in (strings, other):
        assert one.is_empty or StringSet.of_pattern(anchored_pattern(one)) == one


@given(st.sampled_from(PATTERNS), st.sampled_from(PATTERNS))
def test_intersection_and_union_are_those_of_sets(left: str, right: str) -> None:
    first, second = StringSet.of_pattern(left), StringSet.of_pattern(right)
    both, either = first.intersection(second), first.union(second)
    assert [text for text in TEXTS if (text in both) != (text in first and text in second)] == []
    assert [text for text in TEXTS if (text in either) != (text in first or text in second)] == []
    assert both == second.intersection(first)
    assert either.complement() == first.complement().intersection(second.complement())


@given(st.integers(0, 4), st.integers(0, 4))
def test_lengths(least: int, more: int) -> None:
    bounded, open_ended = StringSet.of_lengths(least, least + more), StringSet.of_lengths(least, None)
    assert [text for text in TEXTS if (text in bounded) != (least <= len(text) <= least + more)] == []
    assert [text for text in TEXTS if (text in open_ended) != (least <= len(text))] == []


@given(st.sets(st.text(alphabet="ab\n", max_size=4), max_size=4))
def test_listed_strings_and_all_others(listed: set[str]) -> None:
    strings = StringSet.of_strings(sorted(listed))
    assert {text for text in TEXTS if text in strings} == listed
    assert StringSet.of_pattern(pattern_of_others(sorted(listed))) == strings.complement()


def test_work_ends_where_the_effort_is_spent() -> None:
    with pytest.raises(UnsupportedGrammar):
        StringSet.of_pattern("(a|b)*a(a|b){16}", Effort(10_000))
    with pytest.raises(UnsupportedGrammar):
        StringSet.of_pattern("(a|b)*a(a|b){16}")
    with pytest.raises(UnsupportedGrammar):
        StringSet.of_pattern("(?:(?:(?:a{9}){9}){9}){9}")


@given(st.lists(st.sampled_from(PATTERNS), max_size=5), st.sampled_from(PATTERNS))
def test_an_intersection_of_many_and_a_meeting_are_those_of_their_texts(patterns: list[str], other: str) -> None:
    both = StringSet.all_of(map(StringSet.of_pattern, patterns))
    one_by_one = StringSet.everything()
    for pattern in patterns:
        one_by_one = one_by_one.intersection(StringSet.of_pattern(pattern))
    assert both == one_by_one
    assert Recognizer(other, Effort(100_000)).meets(both) == (not both.intersection(StringSet.of_pattern(other)).is_empty)
