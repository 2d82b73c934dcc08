"""The published examples, computed anew."""

from __future__ import annotations

import numpy as np
import pytest

from grammar_service.automata.byte_dfa import of_choices
from grammar_service.automata.coalescence import model_calls, single_states
from grammar_service.automata.minimal import minimal
from load_tests.canonical.products import languages
from load_tests.canonical.published.examples import BOOLEAN, printed_index
from load_tests.canonical.published.pieces import Pieces


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return Pieces.published()


def test_the_printed_index_takes_nine_tokens_and_two_calls_on_each_way() -> None:
    index = printed_index()
    assert model_calls(index) == {(9, 2)}
    assert len(single_states(index)) == 7


def test_the_published_automata_have_the_published_sizes(pieces: Pieces) -> None:
    """The article draws five canonical states; the smallest automaton has four."""
    language = languages()[BOOLEAN]
    index, own = pieces.index(language), minimal(pieces.own_sequences(language))
    assert (len(index), index.edges) == (17, 48)
    assert (len(own), own.edges) == (4, 4)


def test_at_most_so_many_pieces_may_not_follow_one_as_published(pieces: Pieces) -> None:
    table = pieces.pairs()
    assert max(len(np.unique(table.forbidden(token))) for token in range(len(pieces.texts))) == 12_260


def test_own_sequences_are_those_of_merges(pieces: Pieces) -> None:
    index = pieces.own_sequences(of_choices([" William", " Theodore"]))
    for text in ([" William"], [" Theod", "ore"]):
        assert [pieces.numbers[piece] for piece in text] in index
    assert [pieces.numbers[piece] for piece in (" Will", "iam")] not in index
    assert index.edges == 3
