from __future__ import annotations

from grammar_service.automata.byte_dfa import of_regex
from grammar_service.automata.coalescence import model_calls, runs, single_states, tokenizations
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie

WORDS = ['{"', "name", '":"', "Paul", "John", '","', "age", '":', "20", "30", "}"]
NAME_AND_AGE = TokenIndex.of_moves(
    [{0: 1}, {1: 2}, {2: 3}, {3: 4, 4: 4}, {5: 5}, {6: 6}, {7: 7}, {8: 8, 9: 8}, {10: 9}, {}], [False] * 9 + [True]
)
"""An index that is printed in "Coalescence: making LLM inference 5x faster", over words instead of ids."""


def test_nine_tokens_take_two_calls() -> None:
    assert model_calls(NAME_AND_AGE) == {(9, 2)}
    assert single_states(NAME_AND_AGE) == [0, 1, 2, 4, 5, 6, 8]
    assert tokenizations(NAME_AND_AGE) == 4


def test_what_is_decided_runs_together() -> None:
    spelled = {(run.source, "".join(WORDS[token] for token in run.tokens), run.target) for run in runs(NAME_AND_AGE)}
    assert spelled == {
        (0, '{"name":"', 3),
        (3, 'Paul","age":', 7),
        (3, 'John","age":', 7),
        (7, "20}", 9),
        (7, "30}", 9),
    }


def test_the_end_is_a_choice() -> None:
    index = TokenIndex.of_moves([{0: 1}, {1: 2}, {}], [False, True, True])
    assert model_calls(index) == {(1, 0), (2, 1)}
    assert single_states(index) == [0]


def test_circles_have_no_number_of_tokens() -> None:
    index = TokenIndex.of_moves([{0: 0, 1: 1}, {}], [False, True])
    assert tokenizations(index) is None
    assert model_calls(index) is None
    assert {run.tokens for run in runs(index)} == {(0,), (1,)}


def test_a_text_has_as_many_tokenizations_as_ways_to_cut_it() -> None:
    index = TokenIndex.of_language(of_regex("name"), TokenTrie([b"n", b"a", b"m", b"e", b"na", b"me", b"nam", b"am", b"ame", b"name"]))
    assert tokenizations(index) == 8
