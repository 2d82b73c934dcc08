from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.plain import plain_full_match
from grammar_service.regexes.regex import parse_regex
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of

REGEXES = [
    r"a.b",
    r"\s+|\S",
    r"\W\w",
    r"[ -~]{1,3}",
    r"[\s\S]{2}",
    r"[\d\-]+",
    r"^a|b$",
    r"^(a|bc)*$",
    r"a{2,3}?",
    r"(?P<x>a)(?:b)?",
    r"|a",
    r"\.\/\\",
    r"[^\x00-\x1f]+",
    r"[é-ü]|[^é]",
    r"(a+)+b",
    r"a\nb",
    r"x{3}{",
    r"[a\]^]",
    r"(?!ab)[ab]+",
    r"(?=.*b)\w+",
    r"a\b.*",
    r"\Ba|.(?<!a)",
    r"(?:a$|b)\n?",
]
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "aaab",
    "abcbc",
    "a\nb",
    'a"b',
    "a b",
    " ",
    "_é",
    "é_",
    "12-",
    "-1",
    "ê",
    "./\\",
    "\t",
    "~",
    "xxx{",
    "]",
    "^",
]


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
@pytest.mark.parametrize("pattern", REGEXES)
def test_language_is_that_of_ascii_fullmatch(pattern: str, backend: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, pattern), tokenizer, backend)
    expected = {text for text in TEXTS if re.fullmatch(pattern, text, re.ASCII)}
    assert {text for text in TEXTS if accepts(grammar, text)} == expected


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (r"\p{Lu}\p{L}+", "Éa", "éa"),
        (r"\P{L}{3}", "1-²", "12a"),
        (r"[\p{N}-]+", "1-²", "a"),
        (r"\p{Script=Greek}{2,300}", "αβ", "ab"),
    ],
)
def test_unicode_properties_are_those_of_patterns(pattern: str, right: str, wrong: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, pattern), tokenizer)
    assert accepts(grammar, right)
    assert not accepts(grammar, wrong)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        r"(?P<n>a)\k<n>",
        "(?i)a",
        "(?i:a)",
        "(?>a)",
        "a++",
        r"\p{No_such_property}",
        r"\p",
        "(?=" * 9 + "a" + ")" * 9,
        "(?#x)a",
        "a{,3}",
        "[[:alpha:]]",
    ],
)
def test_what_backends_would_ignore_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedGrammar):
        parse_regex(pattern, Dialect.PYTHON_ASCII)


@pytest.mark.parametrize(
    "pattern", ["foo**", "(", ")", "a)", "[a", "[z-a]", "*a", "a|*", "(?:*)", "a{3,2}", "\\", "^*", "(?=a)*", r"\b+", "a\0b", r"[\d-z]"]
)
def test_what_is_no_regex_is_invalid(pattern: str) -> None:
    with pytest.raises(InvalidGrammar):
        parse_regex(pattern, Dialect.PYTHON_ASCII)


def test_an_absurd_repetition_count_is_too_large() -> None:
    with pytest.raises(GrammarTooLarge):
        parse_regex("a{" + "9" * 100 + "}", Dialect.PYTHON_ASCII)


@settings(max_examples=300)
@given(st.text(alphabet="ab()[]|*+?{}^$\\.-,:=<!dDwWsS0123", max_size=16))
def test_parsing_ends_in_a_regex_of_the_same_language_or_a_grammar_error(pattern: str) -> None:
    try:
        parsed = plain_full_match(pattern)
    except GrammarError:
        return
    original, written = re.compile(pattern, re.ASCII), re.compile(parsed, re.ASCII)
    for text in ("", "a", "b", "ab", "aab", "0", " ", "-", "a-", "ba", ".", "12", "]", "{"):
        assert bool(original.fullmatch(text)) == bool(written.fullmatch(text)), (pattern, parsed, text)
