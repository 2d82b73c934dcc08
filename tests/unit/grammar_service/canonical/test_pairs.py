"""Which tokens may stand side by side, against an encoder that is plainly right."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from grammar_service.canonical.merges import MergeTable, derive
from grammar_service.canonical.pairs import PairTable
from grammar_service.errors import UnsupportedGrammar
from load_tests.canonical.merge_tables import Pair, encoded_by_rank, random_table
from load_tests.canonical.theorem import TABLES, brute_force


def test_pairs_decide_for_every_table_and_encoder() -> None:
    found = brute_force(4, seed=3)
    assert {kind for kind, _, _ in found} == set(TABLES)
    assert {with_itself for _, _, with_itself in found} == {True, False}
    assert sum(tried.sequences for tried in found.values()) > 20_000
    assert not sum(tried.exceptions for tried in found.values())


def pair_table(alphabet: str, merges: list[Pair]) -> tuple[list[str], PairTable, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    tokens = list(dict.fromkeys([*alphabet, *(left + right for left, right in merges)]))
    numbers = {token: number for number, token in enumerate(tokens)}
    table = MergeTable(((numbers[left], numbers[right], numbers[left + right]) for left, right in merges), len(tokens))
    derivations = derive([[numbers[letter] for letter in token] for token in tokens], table)
    return tokens, PairTable(derivations, table), derivations.made


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_the_encoder_makes_of_two_tokens(seed: int) -> None:
    alphabet, merges = random_table(Random(seed))
    tokens, pairs, made = pair_table(alphabet, merges)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    for (first, left), (second, right) in product(enumerate(tokens), repeat=2):
        if made[first] and made[second]:
            assert pairs.may_follow(first, second) == (encoded_by_rank(left + right, ranks) == [left, right]), (left, right, merges)


def test_several_merges_may_make_a_token() -> None:
    """As where a vocabulary lists every split: the one of the lowest rank makes it, and the others still merge across."""
    merges = [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c")]
    tokens, pairs, made = pair_table("abc", merges)
    assert made.all()
    assert not pairs.may_follow(tokens.index("ab"), tokens.index("c"))
    assert not pairs.may_follow(tokens.index("a"), tokens.index("bc"))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_forbidden_is_what_may_not_follow(seed: int) -> None:
    _, pairs, made = pair_table(*random_table(Random(seed)))
    for first in np.flatnonzero(made).tolist():
        forbidden = set(pairs.forbidden(first).tolist())
        assert forbidden == {second for second in np.flatnonzero(made).tolist() if not pairs.may_follow(first, second)}


def test_of_a_merge_that_is_listed_twice_the_last_one_counts() -> None:
    table = MergeTable([(0, 1, 2), (1, 0, 3), (0, 1, 4)], 5)
    rank, whole = table.find(np.array([0, 1, 0, -1]), np.array([1, 0, 0, 1]))
    assert rank[:2].tolist() == [2, 1]
    assert whole.tolist() == [4, 3, -1, -1]


def test_tokens_that_merges_do_not_make_are_known() -> None:
    tokens, _, made = pair_table("abc", [("a", "b"), ("b", "c"), ("a", "bc")])
    assert [token for token, is_made in zip(tokens, made, strict=True) if not is_made] == ["abc"]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("splits", [False, True])
def test_merges_may_rank_before_those_that_make_their_operands(seed: int, splits: bool) -> None:
    """As SentencePiece's runs of spaces."""
    chance = Random(seed)
    alphabet, merges = random_table(chance)
    if splits:
        merges = [(whole[:at], whole[at:]) for whole in map("".join, merges) for at in range(1, len(whole))]
        known = {*alphabet, *map("".join, merges)}
        merges = [merge for merge in merges if known.issuperset(merge)]
    chance.shuffle(merges)
    tokens, pairs, made = pair_table(alphabet, merges)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    for first in np.flatnonzero(made).tolist():
        for second in np.flatnonzero(made).tolist():
            alone = encoded_by_rank(tokens[first] + tokens[second], ranks) == [tokens[first], tokens[second]]
            assert pairs.may_follow(first, second) == alone, (tokens[first], tokens[second], merges)
            assert (second in pairs.forbidden(first)) == (not alone)


def test_a_table_with_many_of_those_is_refused() -> None:
    runs = [("a" * length, "a") for length in range(1, 80)]
    with pytest.raises(UnsupportedGrammar, match="rank before those that make their operands"):
        pair_table("a", runs[::-1])
