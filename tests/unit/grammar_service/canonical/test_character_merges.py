"""Merges of characters, with the bytes of those that have no token, as SentencePiece's are."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from grammar_service.canonical.automaton import State
from grammar_service.canonical.tokenizer_rules import rules_of
from grammar_service.errors import UnsupportedGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.encoders.mistral import mistral_probes
from load_tests.canonical.probes import Probes
from tests.tokenizers.trained_tokenizers import sentences, words

CHARACTERS = '\n a"1./é🎉 e日本東 x\u2581  1Ж𝄞\u00a0'


@pytest.fixture(scope="module", params=[sentences, words])
def tokenizer(request: pytest.FixtureRequest) -> GrammarTokenizer:
    found: GrammarTokenizer = request.param()
    return found


def spelled(tokenizer: GrammarTokenizer, text: str) -> list[int]:
    vocabulary = json.loads(tokenizer.to_json())["model"]["vocab"]
    return [vocabulary[f"<0x{byte:02X}>"] for byte in text.encode()]


def test_it_is_the_encoder(tokenizer: GrammarTokenizer) -> None:
    chance = Random(3)
    texts = ["".join(chance.choice(CHARACTERS.replace("\u2581", "")) for _ in range(4000)), 'It is {"a": [1, 22, "foo bar"]},  naïve.\n']
    probes = Probes(tokenizer, tokenizer.canonical, texts, 3, CHARACTERS)
    assert not probes.texts().wrong
    sequences, rows = probes.sequences(1500), probes.rows(100)
    assert (sequences.wrong, rows.wrong) == (0, 0)
    assert 150 < sequences.canonical < sequences.tried - 150


def test_rows_agree_with_what_is_behind_each_token(tokenizer: GrammarTokenizer) -> None:
    """Also inside of characters."""
    automaton, size = tokenizer.canonical, tokenizer.vocab_size
    for tokens in (
        [],
        tokenizer.inner.encode(b"foo ba"),
        spelled(tokenizer, "𝄞")[:2],
        [*spelled(tokenizer, "𝄞"), *spelled(tokenizer, "Ж")[:1]],
    ):
        state: State | None = automaton.start
        for token in tokens or ():
            state = automaton.after(state, token) if state else None
        assert state is not None
        bits = np.unpackbits(automaton.row(state).view(np.uint8), bitorder="little")
        assert bits[:size].tolist() == [automaton.after(state, token) is not None for token in range(size)]


def test_bytes_spell_only_what_has_no_token(tokenizer: GrammarTokenizer) -> None:
    automaton = tokenizer.canonical
    assert automaton.accepts(spelled(tokenizer, "𝄞"))
    assert not automaton.accepts(spelled(tokenizer, "𝄞")[:3])
    for text in ("a", " ", "é", "\u2581"):
        assert not automaton.accepts(spelled(tokenizer, text))


def test_no_space_is_put_before_an_answer(tokenizer: GrammarTokenizer) -> None:
    within, alone = tokenizer.inner.encode(b"foo"), tokenizer.encode("foo")
    assert tokenizer.canonical.accepts(within or ())
    assert tokenizer.canonical.accepts(alone)
    assert b"".join(tokenizer.vocabulary[token] for token in alone) == b" foo"


def test_a_real_vocabulary_of_characters_is_followed() -> None:
    """Its runs of spaces are made by merges that rank before those of their operands."""
    probes = mistral_probes(seed=4)
    assert not probes.texts().wrong
    sequences = probes.sequences(500)
    assert not sequences.wrong
    assert 50 < sequences.canonical < sequences.tried - 50


def refused(change: dict[str, Any], model: dict[str, Any]) -> None:
    written = json.loads(sentences().to_json())
    rules_of(json.dumps({**written, **change, "model": {**written["model"], **model}}), 1000)


SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
NAMED = {"id": 700, "content": "a\u2581b", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}


@pytest.mark.parametrize(
    ("change", "model", "reason"),
    [
        ({"pre_tokenizer": SPLIT}, {}, "does more with texts"),
        ({"normalizer": {"type": "NFKC"}}, {}, "does more with texts"),
        ({"normalizer": None}, {}, "does more with texts"),
        ({"added_tokens": [NAMED]}, {}, "the sign for a space"),
        ({}, {"ignore_merges": True}, "`ignore_merges`"),
        ({}, {"vocab": {"a": 0, "\u2581": 1}, "merges": []}, "no tokens for some bytes"),
        ({}, {"vocab": {f"<0x{byte:02X}>": byte for byte in range(256)}, "merges": []}, "no token for a space"),
    ],
)
def test_what_is_not_followed_is_refused(change: dict[str, Any], model: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=reason):
        refused(change, model)
