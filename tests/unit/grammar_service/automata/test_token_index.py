from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.automata.byte_dfa import of_choices, of_regex
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.errors import GrammarTooLarge

VOCABULARY = [b"", b"a", b"b", b"ab", b"ba", b"aba", b"\xc3", b"\xa9", b"a\xc3", b"ab", b"", b"abab"]
PATTERNS = ["(ab)*", "a?b+", "[aé]{1,3}", "abab|ba", "é"]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(sequence=st.lists(st.sampled_from([token for token, text in enumerate(VOCABULARY) if text]), max_size=6))
def test_a_sequence_is_accepted_if_its_text_is(pattern: str, sequence: list[int]) -> None:
    dfa = of_regex(pattern)
    index = TokenIndex.of_language(dfa, TokenTrie(VOCABULARY))
    assert (sequence in index) == (b"".join(VOCABULARY[token] for token in sequence) in dfa)


def test_ids_of_equal_bytes_may_both_come_and_ids_without_bytes_never() -> None:
    index = TokenIndex.of_language(of_regex("ab"), TokenTrie(VOCABULARY))
    assert index.row(0)[0].tolist() == [1, 3, 9]


def test_ways_that_no_token_finishes_are_left_out() -> None:
    index = TokenIndex.of_language(of_choices(["abx", "ab"]), TokenTrie(VOCABULARY))
    assert index.row(0)[0].tolist() == [1, 3, 9]
    after = index.after(0, 3)
    assert after is not None
    assert not len(index.row(after)[0])
    assert index.accepting[after]


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(GrammarTooLarge, match="more than 10 edges"):
        TokenIndex.of_language(of_regex("[ab]*"), TokenTrie(VOCABULARY * 3), max_edges=10)


def test_states_keep_their_order_when_dead_ends_go() -> None:
    index = TokenIndex.of_moves([{1: 1, 2: 2}, {1: 3}, {1: 2}, {}, {2: 3}], [False, False, False, True, True]).trimmed()
    assert [row[0].tolist() for row in map(index.row, range(len(index)))] == [[1], [1], []]
    assert index.accepting.tolist() == [False, False, True]
