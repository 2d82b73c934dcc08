"""A tokenizer that brings texts into NFC makes nothing of any other text. More of this: `python -m load_tests.canonical`."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from tokenizers import normalizers

from grammar_service.automata.token_trie import TokenTrie
from grammar_service.backends.canonical.product import product_of
from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.canonical.normal_form.nfc_classes import NfcClasses
from grammar_service.canonical.normal_form.nfc_moves import NfcMoves
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.canonical.encoders.trained import trained_probes, trained_tokenizer
from load_tests.canonical.marked_texts import MARKED

BYTES = [bytes([byte]) for byte in range(256)]
ENGINE = normalizers.NFC()


@pytest.fixture(scope="module")
def automaton() -> CanonicalAutomaton:
    return trained_tokenizer("qwen2").canonical


def spelled(text: str) -> list[int]:
    """As tokens of one byte."""
    own = {text: token for token, text in enumerate(trained_tokenizer("qwen2").vocabulary) if len(text) == 1}
    return [own[bytes([byte])] for byte in text.encode()]


def states_of(automaton: CanonicalAutomaton, tokens: list[int]) -> list[State | None]:
    found: list[State | None] = [automaton.start]
    for token in tokens:
        found.append(None if found[-1] is None else automaton.after(found[-1], token))
    return found


def test_texts_are_taken_where_the_engine_leaves_them_as_they_are() -> None:
    """Byte by byte; any marks, and what may compose with them or with other letters."""
    classes = NfcClasses.of_engine()
    moves = NfcMoves(classes, BYTES, TokenTrie(BYTES))
    special = [chr(point) for point in np.flatnonzero(classes.number_of > 0)]
    pools = [[*MARKED], special, [char for char in special if classes.rank[classes.number_of[ord(char)]]]]
    chance = Random(2)
    taken = 0
    for _ in range(4000):
        text = "".join(chance.choice(chance.choice(pools)) for _ in range(chance.randint(1, 5)))
        text = ENGINE.normalize_str(text) if chance.random() < 0.4 else text
        state = 0
        for byte in text.encode():
            state = -1 if state < 0 else moves.after(state, byte)
        assert (state >= 0) == (ENGINE.normalize_str(text) == text), ascii(text)
        taken += state >= 0
    assert 400 < taken < 3600


@pytest.mark.parametrize(
    "text",
    [
        "Ếch, tiếng Việt; naïve Ångström",
        "대한민국 한국어",
        "ভালো আছি, কেমন",
        "हिन्दी में क़ानून".replace("\u0958", "\u0915\u093c"),
        "ที่นี่ ผู้ใหญ่ กุ่ม",
        "تمامًا مُحَمَّدٌ",
        "שָׁלוֹם".replace("\ufb2a", "\u05e9\u05c1"),
        "ガギグ が",
    ],
)
def test_everyday_texts_of_many_scripts_are_taken(automaton: CanonicalAutomaton, text: str) -> None:
    text = ENGINE.normalize_str(text)
    assert automaton.accepts(trained_tokenizer("qwen2").encode(text))


@pytest.mark.parametrize(
    "text", ["e\u0301", "x\u0301\u0323", "\u212b", "\u1112\u1161", "\uac00\u11a8", "\u09c7\u09be", "=\u0338", "\u0958"]
)
def test_other_texts_have_no_tokens_however_they_are_cut(automaton: CanonicalAutomaton, text: str) -> None:
    *begun, end = states_of(automaton, spelled(text))
    assert end is None
    assert begun[1] is not None


@pytest.mark.parametrize("text", ["e\u0334", "x\u0323\u0301", "\u0301", "\u1161", "\u00e9\u0301"])
def test_marks_that_stay_are_taken(automaton: CanonicalAutomaton, text: str) -> None:
    assert ENGINE.normalize_str(text) == text
    assert automaton.accepts(trained_tokenizer("qwen2").encode(text))


def test_it_is_the_encoder() -> None:
    probes = trained_probes("qwen2", seed=5)
    sequences, rows = probes.sequences(800), probes.rows(80)
    assert (sequences.wrong, rows.wrong) == (0, 0)
    assert 80 < sequences.canonical < sequences.tried - 80


@pytest.mark.parametrize("text", ["e", "x\u0323", "e\u0334", "\ud55c", "\ud558", "\u1112", "\u09c7", "a\u0345"])
def test_rows_agree_with_what_is_behind_each_token(automaton: CanonicalAutomaton, text: str) -> None:
    """Also inside of the next character."""
    size = trained_tokenizer("qwen2").vocab_size
    for tokens in (trained_tokenizer("qwen2").encode(text), [*trained_tokenizer("qwen2").encode(text), spelled("\u0301")[0]]):
        state = states_of(automaton, tokens)[-1]
        if state is not None:
            bits = np.unpackbits(automaton.row(state).view(np.uint8), bitorder="little")
            assert bits[:size].tolist() == [automaton.after(state, token) is not None for token in range(size)]


def test_a_character_of_which_none_may_come_is_not_begun(automaton: CanonicalAutomaton) -> None:
    """All marks that begin with this byte belong before the one that ends the text."""
    state = states_of(automaton, trained_tokenizer("qwen2").encode("a\u0345"))[-1]
    assert state is not None
    assert automaton.after(state, spelled("\u0301")[0]) is None


def test_behind_an_added_token_a_text_begins_anew(automaton: CanonicalAutomaton) -> None:
    tokenizer = trained_tokenizer("qwen2")
    text = "x<call>\u0338y"
    assert ENGINE.normalize_str(text) != text
    tokens = tokenizer.encode(text)
    assert b"".join(tokenizer.vocabulary[token] for token in tokens).decode() == text
    assert automaton.accepts(tokens)


def test_choices_that_are_not_in_nfc_are_left_out() -> None:
    tokenizer = trained_tokenizer("qwen2")
    product = product_of(GrammarSpec(GrammarKind.CHOICE, json.dumps(["e\u0301t\u00e9", "\u00e9t\u00e9", "ete"]), canonical=True), tokenizer)
    assert product is not None
    encoded = [tokenizer.encode(text) for text in ("\u00e9t\u00e9", "ete")]
    starts = {int(token) for token in product.row(0)[0]}
    assert starts == {tokens[0] for tokens in encoded}
