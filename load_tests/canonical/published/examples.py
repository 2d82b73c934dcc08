"""States, edges, tokens and calls of the articles' examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.coalescence import model_calls, single_states
from grammar_service.automata.minimal import minimal
from grammar_service.automata.token_index import TokenIndex
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.costs import forbidden_successors
from load_tests.canonical.products import languages
from load_tests.canonical.published.pieces import Pieces
from load_tests.canonical.published.row import figure

BOOLEAN, OBJECT = "boolean: true or false", "name and age, compact"
PIECES, TEKKEN = "Mistral 7B's pieces", "tekken"
TOKENS, CALLS = "tokens of an object of name and age", "calls of a model for them"
OWN_STATES, OWN_EDGES = f"{BOOLEAN}: states, canonical", f"{BOOLEAN}: edges, canonical"
FORBIDDEN = "tokens that may not follow a token, most"
COMPRESSED: Mapping[int, Mapping[str, int]] = {
    0: {'{"': 2},
    2: {"name": 6},
    6: {'":"': 9},
    9: {"Paul": 14, "John": 14},
    14: {'","': 17},
    17: {"age": 20},
    20: {'":': 22},
    22: {"20": 24, "30": 24},
    24: {"}": 25},
}
"""The index of such an object, as it is printed."""


def example_rows(tekken: GrammarTokenizer) -> Iterator[dict[str, Any]]:
    pieces = Pieces.published()
    language = languages()[BOOLEAN]
    yield from _sizes(PIECES, pieces.index(language), pieces.own_sequences(language))
    index = TokenIndex.of_language(language, tekken.trie)
    yield from _sizes(TEKKEN, index, cartesian_merge(index, tekken.canonical))
    table = pieces.pairs()
    most = max(len(np.unique(table.forbidden(token))) for token in range(len(pieces.texts)))
    yield figure(FORBIDDEN, PIECES, 12_260, most)
    yield figure(FORBIDDEN, TEKKEN, 12_260, forbidden_successors(tekken.canonical, range(1000, tekken.vocab_size, 10))["most"])
    yield from _coalescence("the printed index", printed_index())
    index = TokenIndex.of_language(languages()[OBJECT], tekken.trie)
    yield from _coalescence(TEKKEN, cartesian_merge(index, tekken.canonical))


def printed_index() -> TokenIndex:
    """The compressed index as an automaton; tokens are numbered as they come."""
    states = {state: number for number, state in enumerate(dict.fromkeys([*COMPRESSED, *_targets()]))}
    tokens: dict[str, int] = {}
    moves: list[dict[int, int]] = [{} for _ in states]
    for state, row in COMPRESSED.items():
        for text, target in row.items():
            moves[states[state]][tokens.setdefault(text, len(tokens))] = states[target]
    return TokenIndex.of_moves(moves, [not row for row in moves])


def _targets() -> Iterator[int]:
    for row in COMPRESSED.values():
        yield from row.values()


def _sizes(on: str, index: TokenIndex, own: TokenIndex) -> Iterator[dict[str, Any]]:
    """Ours are minimal."""
    yield figure(f"{BOOLEAN}: states, all token sequences", on, 17, len(index))
    yield figure(f"{BOOLEAN}: edges, all token sequences", on, 48, index.edges)
    own = minimal(own)
    yield figure(OWN_STATES, on, 5, len(own))
    yield figure(OWN_EDGES, on, 4, own.edges)


def _coalescence(on: str, index: TokenIndex) -> Iterator[dict[str, Any]]:
    """Of the longest of its texts' sequences."""
    lengths = model_calls(index) or {(0, 0)}
    yield figure(TOKENS, on, 9, max(length for length, _ in lengths))
    yield figure(CALLS, on, 2, max(calls for _, calls in lengths))
    yield figure("states with one way on, of such an object", on, 2, len(single_states(index)))
