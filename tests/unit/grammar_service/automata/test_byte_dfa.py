from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.automata.byte_dfa import ByteDfa, of_choices, of_regex
from grammar_service.errors import GrammarTooLarge, InvalidGrammar, UnsupportedGrammar

EDGES = "\x00\x7f\x80߿ࠀ퟿￿\U00010000\U0003ffff\U00040000\U0010ffffaé東🎉"
PATTERNS = [
    "a*b",
    "[^a]",
    r"[\s\S]",
    ".",
    r"[à-ÿ]+",
    "[\u0800-\uffff]",
    "[߿-ࠀ]",
    "[\U00010000-\U0010ffff]",
    "[^\U0003ffff-\U00040000]",
    r"\w+@\w+\.(com|org)",
    "(?=.*b)[abc]{2}",
]


def is_minimal(dfa: ByteDfa) -> bool:
    """No two states accept the same: Moore's refinement tells all of them apart."""
    blocks = dfa.accepting.astype(int).tolist()
    while True:
        rows = [
            (block, tuple(blocks[target] if target >= 0 else -1 for target in row)) for block, row in zip(blocks, dfa.moves, strict=True)
        ]
        names = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        if len(names) == len(set(blocks)):
            return len(names) == len(dfa)
        blocks = [names[row] for row in rows]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_accepts_the_texts_that_the_regex_matches(pattern: str) -> None:
    dfa, chance = of_regex(pattern), Random(1)
    for _ in range(2000):
        text = "".join(chance.choice(EDGES + "abc@.com_ ") for _ in range(chance.randrange(4)))
        assert (text.encode() in dfa) == bool(re.fullmatch(pattern, text, re.ASCII)), text


@pytest.mark.parametrize("char", EDGES)
def test_one_character_is_one_character(char: str) -> None:
    dfa = of_regex(f"[{re.escape(char)}]") if char != "\x00" else of_regex(r"[\x00a]")
    assert char.encode() in dfa
    assert not [other for other in EDGES if other.encode() in dfa and other not in (char, "a")]


@given(st.binary(min_size=1, max_size=4))
def test_nothing_but_utf8_is_accepted(text: bytes) -> None:
    dfa = of_regex(r"[\s\S]*")
    try:
        text.decode()
    except UnicodeDecodeError:
        assert text not in dfa
    else:
        assert text in dfa


@pytest.mark.parametrize(
    "text", [b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80"]
)
def test_overlong_forms_and_surrogates_are_no_text(text: bytes) -> None:
    assert text not in of_regex(r"[\s\S]*")


@pytest.mark.parametrize("dfa", [*map(of_regex, PATTERNS), of_choices(["paul", "pauline", "lin", "caroline"])])
def test_it_is_the_smallest(dfa: ByteDfa) -> None:
    assert is_minimal(dfa)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=8), st.text(max_size=5))
def test_choices_are_exactly_these(choices: list[str], other: str) -> None:
    dfa = of_choices(choices)
    assert all(choice.encode() in dfa for choice in choices)
    assert (other.encode() in dfa) == (other in choices)


def test_equal_endings_are_shared() -> None:
    assert len(of_choices(["boolean: true", "boolean: false"])) == len(of_regex("boolean: (true|false)")) == 17


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="too large"):
        of_regex("(a|b)*a(a|b){13}")
    with pytest.raises(GrammarTooLarge, match="choices"):
        of_choices([f"{number:x}" * 200 for number in range(200)])


def test_a_regex_that_nothing_matches_is_refused() -> None:
    with pytest.raises(InvalidGrammar, match="nothing matches"):
        of_regex("(?!a)a")
