"""How many strings begin in some way, against counting them one by one."""

from __future__ import annotations

import tracemalloc
from itertools import product

import pytest

from grammar_service.regexes.counted import MANY, Beginnings
from grammar_service.regexes.string_set import StringSet

LETTERS = "abé€😀😁"
PATTERNS = ["^[ab]{0,3}$", "^(a|é[€b]?|😀)$", "^[^\\u0000-`c-\\u{10ffff}]{2}$", "^(é|€|[😀-😁]{1,2})a?$", "^a(b(a(b)?)?)?$"]


def strings(pattern: str) -> list[str]:
    held = StringSet.of_pattern(pattern)
    return [text for length in range(5) for text in map("".join, product(LETTERS, repeat=length)) if text in held]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_beginning_has_as_many_as_there_are(pattern: str) -> None:
    held, listed = StringSet.of_pattern(pattern), [text.encode() for text in strings(pattern)]
    beginnings = Beginnings(held.moves, held.accepting)
    begun = {text.encode()[:length] for text in map("".join, product(LETTERS, repeat=2)) for length in range(len(text.encode()) + 1)}
    for text in sorted(begun) + listed:
        assert beginnings.count(text) == sum(other.startswith(text) for other in listed), text


def test_what_goes_on_without_end_is_many() -> None:
    held = StringSet.of_pattern("^(a+|b|ca?)$")
    beginnings = Beginnings(held.moves, held.accepting)
    assert [beginnings.count(text) for text in (b"", b"a", b"b", b"c", b"ca", b"d", b"bb")] == [MANY, MANY, 1, 2, 1, 0, 0]


def test_half_a_character_and_what_is_none() -> None:
    held = StringSet.of_pattern("^.$")
    beginnings = Beginnings(held.moves, held.accepting)
    assert beginnings.count(b"\xc3") == 64
    assert beginnings.count(b"\xe0") == 0x1000 - 0x800
    assert beginnings.count(b"\xed") == 0x800
    assert beginnings.count(b"\xf4") == 0x10000
    assert [beginnings.count(text) for text in (b"\x80", b"\xff", b"\xc3a", b"\xc0")] == [0, 0, 0, 0]


def test_as_many_texts_as_one_likes_may_be_asked_for() -> None:
    held = StringSet.of_pattern("^[ab]{20}$")
    beginnings = Beginnings(held.moves, held.accepting)
    for number in range(2000):
        text = f"{number:020b}".replace("0", "a").replace("1", "b").encode()
        assert beginnings.count(text) == 1
        assert beginnings.count(text[:12]) == 2**8


def test_a_long_beginning_takes_no_square_of_its_length() -> None:
    held = StringSet.of_pattern("^a*b$")
    beginnings = Beginnings(held.moves, held.accepting)
    length = 5000
    tracemalloc.start()
    try:
        assert beginnings.count(b"a" * length) == MANY
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < length * 200
    assert [beginnings.count(b"a" * at + b"b") for at in range(0, length, 99)] == [1] * len(range(0, length, 99))
