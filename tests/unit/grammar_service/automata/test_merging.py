"""DirectMerge and CartesianMerge accept exactly the encodings of a language's texts."""

from __future__ import annotations

import pytest

from grammar_service.automata.cartesian_merge import MergeTableDfa, cartesian_merge
from grammar_service.automata.direct_merge import direct_merge
from grammar_service.automata.merge_graph import MergeGraph
from grammar_service.automata.token_index import TokenIndex
from grammar_service.errors import GrammarTooLarge
from load_tests.canonical.merge_tables import Moves, Pair, Tokens, encoded_by_table, words
from load_tests.canonical.merging import compare, index_words

A, B = ord("a"), ord("b")
A_STAR_B: tuple[Moves, set[int]] = [{A: 0, B: 1}, {}], {1}


def test_both_equal_enumeration_on_random_automata() -> None:
    found = compare(500, seed=0)
    assert found.automata == 500
    assert (found.direct_wrong, found.cartesian_wrong) == (0, 0)


def merged(moves: Moves, accepting: set[int], merges: list[Pair], most: int) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """What is accepted after merging, and what should be."""
    tokens = Tokens("ab", merges)
    texts = words(moves, accepting, 0, tokens.texts, most)
    graph = direct_merge(MergeGraph(moves, accepting), tokens.merges)
    found = words(graph.after, graph.accepting, graph.start, tokens.texts, most)
    return found, {tuple(encoded_by_table("".join(text), merges)) for text in texts}


def test_the_start_is_come_to_though_only_the_left_operand_leads_to_it() -> None:
    """The appendix's algorithm lacks this: it would take `b` away from the start of `a*b`."""
    found, expected = merged(*A_STAR_B, [("a", "b")], 5)
    assert found == expected
    assert ("b",) in found


def test_no_token_is_forbidden_at_the_start_of_a_text() -> None:
    """The same of algorithm 3: when `b` merges, it is the only token that has been left to the start's state."""
    tokens = Tokens("ab", [("a", "b"), ("ab", "a"), ("b", "a")])
    dfa = MergeTableDfa((A, B), tokens.merges)
    assert dfa.after(dfa.start, A) is not None
    assert dfa.after(dfa.behind[B], A) is None


@pytest.mark.parametrize(
    ("moves", "accepting"),
    [
        ([{A: 0, B: 0}], {0}),
        ([{B: 1, A: 2}, {A: 1, B: 2}, {A: 1}], {1, 2}),
        ([{A: 1}, {A: 2, B: 1}, {A: 3}, {A: 1, B: 0}], {0, 1, 2, 3}),
        ([{B: 1}, {A: 2}, {A: 1, B: 1}], {1, 2}),
    ],
)
def test_equal_letters_pair_from_the_left(moves: Moves, accepting: set[int]) -> None:
    """Also where another letter leads to a state that such letters go through: none stands before it then, which is an even number."""
    found, expected = merged(moves, accepting, [("a", "a"), ("aa", "b"), ("aa", "aa")], 9)
    assert found == expected
    assert any("aaaa" in sequence for sequence in found)


def test_the_example_of_the_table() -> None:
    """Table 1 of the article: the order of merges counts, and so does that of letters."""
    text, merges = "aaaabaacac", [("a", "b"), ("a", "a"), ("a", "c")]
    tokens = Tokens("abc", merges)
    moves: Moves = [*({ord(letter): at + 1} for at, letter in enumerate(text)), {}]
    graph = direct_merge(MergeGraph(moves, {len(text)}), tokens.merges)
    assert words(graph.after, graph.accepting, graph.start, tokens.texts, 20) == {("aa", "a", "ab", "aa", "c", "ac")}


def test_both_make_the_same_automaton_of_letters_that_never_end() -> None:
    merges = [("a", "b"), ("ab", "a")]
    tokens = Tokens("ab", merges)
    all_tokens = TokenIndex.of_moves([dict.fromkeys(tokens.texts, 0)], [True])
    product = cartesian_merge(all_tokens, MergeTableDfa((A, B), tokens.merges))
    graph = direct_merge(MergeGraph([{A: 0, B: 0}], {0}), tokens.merges)
    assert index_words(product, tokens.texts, 7) == words(graph.after, graph.accepting, graph.start, tokens.texts, 7)


def test_what_grows_too_large_is_refused() -> None:
    tokens = Tokens("ab", [("a", "b")])
    with pytest.raises(GrammarTooLarge, match="more than 1 states"):
        cartesian_merge(TokenIndex.of_moves([{A: 0, B: 0}], [True]), MergeTableDfa((A, B), tokens.merges), max_nodes=1)
