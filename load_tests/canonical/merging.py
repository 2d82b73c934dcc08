"""DirectMerge and CartesianMerge against enumeration: random automata, random merge tables."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from grammar_service.automata.byte_dfa import ByteDfa
from grammar_service.automata.cartesian_merge import MergeTableDfa, cartesian_merge
from grammar_service.automata.direct_merge import direct_merge
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from load_tests.canonical.merge_tables import Tokens, copied, encoded_by_table, random_automaton, random_table, words

LETTERS = 8
"""Texts of up to so many are enumerated."""


@dataclass(slots=True)
class Compared:
    """How many automata, and how many of them either algorithm got wrong."""

    automata: int = 0
    direct_wrong: int = 0
    cartesian_wrong: int = 0


def compare(count: int, seed: int) -> Compared:
    chance = Random(seed)
    found = Compared()
    for _ in range(count):
        alphabet, merges = random_table(chance)
        tokens = Tokens(alphabet, merges)
        graph = copied(random_automaton(chance, alphabet))
        texts = words(graph.after, graph.accepting, graph.start, tokens.texts, LETTERS)
        expected = {tuple(encoded_by_table("".join(text), merges)) for text in texts}
        product = cartesian_merge(_index(graph.index(), tokens), MergeTableDfa(map(ord, alphabet), tokens.merges))
        direct_merge(graph, tokens.merges)
        found.automata += 1
        found.direct_wrong += words(graph.after, graph.accepting, graph.start, tokens.texts, LETTERS) != expected
        found.cartesian_wrong += index_words(product, tokens.texts, LETTERS) != expected
    return found


def index_words(index: TokenIndex, texts: dict[int, str], most: int) -> set[tuple[str, ...]]:
    """The accepted sequences of up to `most` letters."""
    moves = [dict(zip(*(column.tolist() for column in index.row(state)), strict=True)) for state in range(len(index))]
    return words(moves, set(np.flatnonzero(index.accepting).tolist()), 0, texts, most)


def _index(letters: TokenIndex, tokens: Tokens) -> TokenIndex:
    """All token sequences whose text an automaton over letters accepts."""
    moves = np.full((len(letters), 256), -1, np.int32)
    moves[letters.sources, letters.tokens] = letters.targets
    vocabulary = [b""] * (max(tokens.texts) + 1)
    for token, text in tokens.texts.items():
        vocabulary[token] = text.encode()
    return TokenIndex.of_language(ByteDfa(moves, letters.accepting), TokenTrie(vocabulary))
