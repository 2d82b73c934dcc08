"""Distributions that are computed along token sequences, against all sequences written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.distribution.arms import Mask, arms_of
from load_tests.canonical.distribution.token_tree import Floats, Tokens
from load_tests.canonical.distribution.walks import along, conditional, masked, run

TEXTS = (' "Paul",', ' "Pam",', ' "Theodore",')


class Model:
    """Probabilities that depend on the sequence, and on nothing else; it tells only what has been read."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._read: set[Tokens] = set()

    def read(self, sequences: Iterable[Tokens]) -> None:
        self._read |= {sequence[:length] for sequence in sequences for length in range(len(sequence) + 1)}

    def __getitem__(self, sequence: Tokens) -> Floats:
        if sequence not in self._read:
            raise KeyError(sequence)
        drawn: Floats = np.random.default_rng(Random(repr(sequence)).getrandbits(32)).exponential(size=self._size) ** 4
        drawn /= drawn.sum()
        return drawn


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def spellings(text: bytes, vocabulary: list[bytes]) -> Iterator[Tokens]:
    """All token sequences of a text."""
    if not text:
        yield ()
    for token, start in enumerate(vocabulary):
        if start and text.startswith(start):
            yield from ((token, *rest) for rest in spellings(text[len(start) :], vocabulary))


def mass(model: Model, sequence: Tokens) -> float:
    model.read([sequence])
    return float(np.prod([model[sequence[:at]][token] for at, token in enumerate(sequence)]))


def drawn(model: Model, sequence: Tokens, allowed: set[Tokens]) -> float:
    """The probability of a sequence if each token is drawn among those by which one of `allowed` goes on."""
    model.read([sequence])
    share = 1.0
    for at, token in enumerate(sequence):
        ways = {other[at] for other in allowed if other[:at] == sequence[:at]}
        share *= model[sequence[:at]][token] / sum(model[sequence[:at]][way] for way in ways)
    return share


def test_the_conditional_is_the_mass_of_all_spellings(tokenizer: GrammarTokenizer) -> None:
    model, raw = Model(tokenizer.vocab_size), [text.encode() for text in TEXTS]
    index = arms_of(TEXTS, tokenizer).plain.index
    vocabulary = [*tokenizer.vocabulary]
    expected = [sum(mass(model, sequence) for sequence in spellings(text, vocabulary)) for text in raw]
    found = run(model, {"exact": conditional(model, index, raw, vocabulary, 0.0)})["exact"]
    assert found.mass == pytest.approx(expected)
    assert found.pruned == 0
    pruned = run(model, {"exact": conditional(model, index, raw, vocabulary, max(expected) / 10)})["exact"]
    assert pruned.pruned > 0
    assert (pruned.mass <= found.mass).all()
    assert pruned.mass.sum() + pruned.pruned >= found.mass.sum()


def test_each_mask_gives_what_drawing_from_it_gives(tokenizer: GrammarTokenizer) -> None:
    model, raw, vocabulary = Model(tokenizer.vocab_size), [text.encode() for text in TEXTS], [*tokenizer.vocabulary]
    arms = arms_of(TEXTS, tokenizer)
    every = [set(spellings(text, vocabulary)) for text in raw]
    own = [{tuple(tokenizer.inner.encode(text) or ())} for text in raw]
    for mask, sequences in ((arms.plain, every), (arms.canonical, own)):
        allowed = {sequence for of_text in sequences for sequence in of_text}
        expected = [sum(drawn(model, sequence, allowed) for sequence in of_text) for of_text in sequences]
        found = run(model, {"mask": masked(model, mask, raw, vocabulary, 0.0)})["mask"]
        assert found.mass == pytest.approx(expected)
        assert found.mass.sum() == pytest.approx(1)
        assert found.starved == 0


def test_what_starves_under_mask_and_row_ends_by_the_masks_alone(tokenizer: GrammarTokenizer) -> None:
    """The blank and the quote are one token of the tokenizer: behind the blank alone, no quote is in the row."""
    model, raw = Model(tokenizer.vocab_size), [text.encode() for text in TEXTS]
    arms = arms_of(TEXTS, tokenizer)
    (blank,) = [token for token, text in enumerate(tokenizer.vocabulary) if text == b" "]
    at, state = dict(arms.row.allowed(arms.row.start))[blank]
    assert state is not None
    assert {after for _, (_, after) in arms.row.allowed((at, state))} == {None}
    found = run(model, {"row": masked(model, arms.row, raw, tokenizer.vocabulary, 0.0)})["row"]
    model.read([()])
    ways = [token for token, _ in arms.plain.allowed(0)]
    assert found.starved >= model[()][blank] / sum(model[()][token] for token in ways)
    assert found.mass.sum() == pytest.approx(1)


def test_walks_go_on_side_by_side_and_give_what_they_give_alone(tokenizer: GrammarTokenizer) -> None:
    raw, vocabulary = [text.encode() for text in TEXTS], tokenizer.vocabulary
    arms = arms_of(TEXTS, tokenizer)
    masks: dict[str, Mask[Any]] = {"plain": arms.plain, "canonical": arms.canonical}
    model = Model(tokenizer.vocab_size)
    together = run(model, {name: masked(model, mask, raw, vocabulary, 1e-4) for name, mask in masks.items()})
    for name, mask in masks.items():
        other = Model(tokenizer.vocab_size)
        alone = run(other, {name: masked(other, mask, raw, vocabulary, 1e-4)})[name]
        assert together[name].shares == pytest.approx(alone.shares)


def test_own_sequences_have_the_product_of_their_tokens(tokenizer: GrammarTokenizer) -> None:
    model = Model(tokenizer.vocab_size)
    assert along(model, [(5, 6), (7,)]) == pytest.approx([model[()][5] * model[(5,)][6], model[()][7]])
