"""Look-around, anchors and word boundaries wherever they stand, against an independent matcher on all short texts."""

from __future__ import annotations

from itertools import product

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.plain import plain_full_match, plain_pattern, plain_patterns
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.string_set import Recognizer, StringSet

TEXTS = ["".join(chars) for length in range(6) for chars in product("ab-", repeat=length)]
PATTERNS = [
    "^(?!ab)a.*",
    "^(?=.*b)(?=.*a)..",
    "^(?!.*--)[a-]+$",
    "^[ab]+(?<!ab)$",
    "(?<=a)b",
    "(?<!a)b$",
    "^(?:(?!ab).)*$",
    r"\ba",
    r"a\b",
    r"\Bb\B",
    r"^\b|-\B$",
    "a$|^b",
    "(^a|b$)",
    "a(b$|-)",
    "^(?=a{2,3}$)a*",
    "^(?!^-*$)[a-]*$",
    "(?=(?!a)[ab])",
    "^(?:a(?=b)|b(?!a)|-)+$",
    "(?<=^a|b)-",
    "(?<=(?<!b)a)-",
    "^(?!)|a",
    "^(?=(a|b)(?=b))..$",
    "^(?=a*?b)[ab]{2}",
    "^P(?:(a+b)|(?!.*b)(?=a|-a)a?(-(?=a)a?)?)$".replace("P", "b"),
]


def found(pattern: str, text: str) -> bool:
    return regex.search(pattern.replace("$", r"\Z"), text, regex.ASCII) is not None


def all_match(patterns: tuple[str, ...], text: str) -> bool:
    return all(found(pattern, text) for pattern in patterns)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_set_and_the_plain_patterns_have_what_a_search_finds(pattern: str) -> None:
    expected = [text for text in TEXTS if found(pattern, text)]
    strings, recognizer = StringSet.of_pattern(pattern), Recognizer(pattern, Effort(1_000_000))
    assert [text for text in TEXTS if text in strings] == expected
    assert [text for text in TEXTS if recognizer.matches(text)] == expected
    assert [text for text in TEXTS if all_match(plain_patterns(pattern), text)] == expected
    assert [text for text in TEXTS if found(plain_pattern(pattern), text)] == expected


_atoms = st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\b", r"\B", "^", "$"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.lists(inner, min_size=1, max_size=3).map("".join)
    either = st.tuples(group, group).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
    repeated = st.tuples(group, st.sampled_from(["*", "+", "?", "{2}", "*?", "{1,2}"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
    ahead = st.tuples(st.sampled_from(["(?=", "(?!"]), group).map(lambda pair: f"{pair[0]}{pair[1]})")
    behind = st.tuples(st.sampled_from(["(?<=", "(?<!"]), group).map(lambda pair: f"{pair[0]}{pair[1]})")
    return st.one_of(group, either, repeated, ahead, behind)


@settings(max_examples=300, deadline=None)
@given(st.recursive(_atoms, _larger, max_leaves=7))
def test_random_patterns_have_what_a_search_finds(pattern: str) -> None:
    try:
        strings = StringSet.of_pattern(pattern)
    except GrammarError:
        return
    assert [text for text in TEXTS[:122] if (text in strings) != found(pattern, text)] == [], pattern


def test_a_line_break_at_the_end_is_where_python_says() -> None:
    for text in ("a", "a\n", "b", "b\n"):
        assert bool(regex.fullmatch(plain_full_match(r"(?:a$|b)\n?"), text)) == bool(regex.fullmatch(r"(?:a$|b)\n?", text)), text


@pytest.mark.parametrize(
    "pattern",
    ["^(?=.*(a|b)*a(a|b){16})(?!b)", "^(?:(?!(a|b)*a(a|b){14}).)*$", "(?<=(a|b)*a(a|b){16})c", "(?=" * 7 + "(a|b)*a(a|b){9}" + ")" * 7],
)
def test_hostile_patterns_end_in_a_refusal(pattern: str) -> None:
    with pytest.raises(UnsupportedGrammar):
        StringSet.of_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?<=a(?=b))", r"(?<=\ba)", "(?<=a$)"])
def test_what_looks_back_does_not_look_ahead(pattern: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="inside look-behind"):
        StringSet.of_pattern(pattern)


def test_what_is_remembered_costs_the_same() -> None:
    pattern = "^(?!ab)(?!ba)[ab]*$"
    spent = []
    for _ in range(2):
        effort = Effort(100_000)
        plain_patterns(pattern, effort)
        spent.append(effort.spent)
    assert spent[0] == spent[1] > 0
    with pytest.raises(UnsupportedGrammar):
        plain_patterns(pattern, Effort(spent[0] - 1))


ESCAPES = [
    (r"^\p{L}$", "aßЖ漢", "1_ "),
    (r"^\p{Letter}$", "é", "1"),
    (r"^\P{L}$", "1 ", "a"),
    (r"^\p{digit}$", "1४", "a"),
    (r"^\p{gc=Lu}$", "AÉ", "aé"),
    (r"^\p{General_Category=Uppercase_Letter}$", "A", "a"),
    (r"^\p{Script=Greek}$", "αΩ", "a"),
    (r"^\p{sc=Cyrl}$", "Ж", "a"),
    (r"^\p{scx=Deva}$", "क।", "a"),
    (r"^\p{Emoji_Component}$", "#1", "a"),
    (r"^\p{Extended_Pictographic}$", "😀", "a"),
    (r"^[\p{Lu}\d]$", "A1", "a"),
    (r"^[^\p{L}]$", "1", "a"),
    (r"^\p{ASCII}$", "a", "é"),
    (r"^\p{Any}$", "aé", ""),
    (r"^\u{1F409}$", "\U0001f409", "a"),
    (r"^\uD83D\uDC09$", "\U0001f409", "a"),
    (r"^\x41$", "A", "a"),
    (r"^\cJ$", "\n", "J"),
    (r"^[\b]$", "\b", "b"),
    (r"^[^]$", "a\n", ""),
    (r"^[[a&&b]$", "[a&b", "c"),
    (r"^(?<größe>a)$", "a", "b"),
]


@pytest.mark.parametrize(("pattern", "inside", "outside"), ESCAPES)
def test_escapes_mean_what_ecma_262_says(pattern: str, inside: str, outside: str) -> None:
    strings = StringSet.of_pattern(pattern)
    assert [char for char in inside if char not in strings] == []
    assert [char for char in outside if char in strings] == []


@pytest.mark.parametrize(
    "pattern", [r"\p{Latin}", r"\p{Script=Nonsense}", r"\p{L", r"\p{IsGreek}", r"\pL", "[[:alpha:]]", "[]", r"\uD800", r"\u{110000}"]
)
def test_what_ecma_262_does_not_have_is_refused(pattern: str) -> None:
    with pytest.raises(GrammarError):
        parse_regex(pattern, Dialect.ECMA)
