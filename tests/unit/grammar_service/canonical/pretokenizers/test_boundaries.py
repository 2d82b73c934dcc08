"""Where texts are cut, against the tokenizers' own engine."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tokenizers import Regex, pre_tokenizers

from grammar_service.canonical.pretokenizers.boundaries import Boundaries
from grammar_service.canonical.pretokenizers.character_classes import CharacterClasses
from grammar_service.canonical.pretokenizers.pattern import GPT2, WHOLE, classes_of, parse_pattern
from grammar_service.canonical.pretokenizers.scanner import Scanner
from grammar_service.canonical.pretokenizers.utf8_classes import DEAD, Utf8Classes
from grammar_service.errors import UnsupportedGrammar
from load_tests.canonical.encoders.trained import PATTERNS
from load_tests.canonical.probes import CHARACTERS


def boundaries_of(pattern: str, digits: bool = False) -> tuple[Boundaries, CharacterClasses]:
    branches = parse_pattern(pattern)
    classes = CharacterClasses(classes_of(branches), digits)
    return Boundaries.of(Scanner(branches, classes), classes), classes


def cuts(boundaries: Boundaries, classes: CharacterClasses, text: str) -> list[tuple[int, ...]]:
    """The boundaries of all ways through a text that may end."""
    ways: set[tuple[int, tuple[int, ...]]] = {(0, ())}
    for at, char in enumerate(text):
        number = classes.number_of[ord(char)]
        cut = {(int(boundaries.ways[1, one, number]), (*before, at)) for one, before in ways}
        ways = {way for way in cut | {(int(boundaries.ways[0, one, number]), before) for one, before in ways} if way[0]}
    return [before for one, before in ways if boundaries.final[one]]


@pytest.mark.parametrize("name", PATTERNS)
def test_one_way_through_a_text_may_end_and_is_the_engines(name: str) -> None:
    boundaries, classes = boundaries_of(PATTERNS[name])
    engine, chance = pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated"), Random(1)
    for _ in range(1500):
        text = "".join(chance.choice(CHARACTERS + "slTrev  \n") for _ in range(chance.randint(1, 12)))
        assert cuts(boundaries, classes, text) == [tuple(begin for _, (begin, _) in engine.pre_tokenize_str(text))], text


def test_digits_are_cut_before_the_regex_looks() -> None:
    boundaries, classes = boundaries_of(GPT2, digits=True)
    stages = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(Regex(GPT2), "isolated")]
    engine, chance = pre_tokenizers.Sequence(stages), Random(2)
    for _ in range(1500):
        text = "".join(chance.choice("1 2٣Ⅷ½a's\n.") for _ in range(chance.randint(1, 10)))
        assert cuts(boundaries, classes, text) == [tuple(begin for _, (begin, _) in engine.pre_tokenize_str(text))], text


def test_a_text_that_is_not_cut_is_one_piece() -> None:
    boundaries, classes = boundaries_of(WHOLE)
    assert cuts(boundaries, classes, "a b\n1") == [(0,)]


@pytest.mark.parametrize("pattern", [r"\p{L}++|.", r"(ab)+", r"a*?", r"\bx", r"\p{L}+|(?<=a)b", "^a", r"(a)\1", "a{1,99}"])
def test_what_is_not_followed_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="regex that is not followed"):
        parse_pattern(pattern)


def test_a_regex_that_leaves_something_over_is_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="leaves parts of texts over"):
        boundaries_of(r"\p{L}+|\s+")
    with pytest.raises(UnsupportedGrammar, match="empty text"):
        boundaries_of(r"\p{L}*|[\s\S]")


def test_classes_are_read_byte_by_byte() -> None:
    classes = CharacterClasses([r"\p{L}", r"\s"], digits=True)
    utf8 = Utf8Classes.of(classes.number_of)
    for char in [*CHARACTERS, *map(chr, Random(3).sample(range(0xD800), 500)), "\uffff", "\U00010000", "\U0010ffff"]:
        place = 0
        number = int(classes.number_of[ord(char)])
        *before, last = char.encode()
        for byte in before:
            place = int(utf8.step[place, byte])
            assert place > 0
            assert utf8.open[place, number]
        assert utf8.step[place, last] == 0
        assert utf8.ended[place, last] == number


@pytest.mark.parametrize("text", [b"\xc1", b"\xe0\x80", b"\xed\xa0", b"\xf0\x80", b"\xf4\x90", b"\x80", b"\xc3a"])
def test_what_no_text_holds_is_dead(text: bytes) -> None:
    utf8 = Utf8Classes.of(np.zeros(0x110000, np.int16) - (np.arange(0x110000) // 0x800 == 0x1B))
    place = 0
    for byte in text:
        assert place != DEAD
        place = int(utf8.step[place, byte])
    assert place == DEAD
