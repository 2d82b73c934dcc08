"""The theorem of pairs by brute force: a sequence is what an encoder makes of its text exactly if each two neighbours are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from random import Random

from load_tests.canonical.merge_tables import Pair, encoded_by_rank, encoded_by_sweeps, encoded_by_table, trained

Ranks = dict[Pair, int]
TABLES = ("trained", "trained, all splits", "shuffled ranks, all splits", "shuffled merges", "random words, all splits")
MOST_TOKENS = 8
LONG_SHARE = 0.2
"""Of the sequences of four tokens, those that are tried."""


def _by_table(text: str, ranks: Ranks) -> list[str]:
    return encoded_by_table(text, sorted(ranks, key=lambda pair: ranks[pair]))


ENCODERS: dict[str, Callable[[str, Ranks], list[str]]] = {
    "lowest rank, leftmost": encoded_by_rank,
    "lowest rank wherever it stands": encoded_by_sweeps,
    "each merge once": _by_table,
}


@dataclass(slots=True)
class Tried:
    """`exceptions`: the sequence is canonical and a pair is not, or the other way round."""

    sequences: int = 0
    exceptions: int = 0


def brute_force(tables: int, seed: int) -> dict[tuple[str, str, bool], Tried]:
    """By kind of table, encoder, and whether a letter merges with itself."""
    chance = Random(seed)
    found: dict[tuple[str, str, bool], Tried] = {}
    for _ in range(tables):
        alphabet = "ab" if chance.random() < 0.6 else "abc"
        for kind, ranks in _tables(chance, alphabet):
            with_itself = any(left == right for left, right in ranks)
            for name, encoder in ENCODERS.items():
                tried = found.setdefault((kind, name, with_itself), Tried())
                _try(chance, alphabet, ranks, encoder, tried)
    return found


def _try(chance: Random, alphabet: str, ranks: Ranks, encoder: Callable[[str, Ranks], list[str]], tried: Tried) -> None:
    encode = lru_cache(maxsize=None)(lambda text: tuple(encoder(text, ranks)))
    tokens = list(dict.fromkeys([*alphabet, *(left + right for left, right in ranks)]))[:MOST_TOKENS]
    pairs = {pair for pair in product(tokens, repeat=2) if encode("".join(pair)) == pair}
    for length in (3, 4):
        for sequence in product(tokens, repeat=length):
            if length == 4 and chance.random() > LONG_SHARE:
                continue
            tried.sequences += 1
            tried.exceptions += (encode("".join(sequence)) == sequence) != all(pair in pairs for pair in pairwise(sequence))


def _tables(chance: Random, alphabet: str) -> Iterator[tuple[str, Ranks]]:
    merges = trained(chance, alphabet, chance.randint(2, 9))
    yield TABLES[0], {merge: rank for rank, merge in enumerate(merges)}
    tokens = [*alphabet, *(left + right for left, right in merges)]
    yield TABLES[1], _all_splits(tokens)
    longer = tokens[len(alphabet) :]
    yield TABLES[2], _all_splits([*alphabet, *chance.sample(longer, len(longer))])
    yield TABLES[3], {merge: rank for rank, merge in enumerate(chance.sample(merges, len(merges)))}
    words = {"".join(chance.choice(alphabet) for _ in range(chance.randint(2, 5))) for _ in merges}
    yield TABLES[4], _all_splits([*alphabet, *sorted(words)])


def _all_splits(tokens: Iterable[str]) -> Ranks:
    """Every pair that makes a token, by the rank of what it makes."""
    ranks = {token: rank for rank, token in enumerate(tokens)}
    halves = [(token[:at], token[at:]) for token in ranks for at in range(1, len(token))]
    return {(left, right): ranks[left + right] for left, right in halves if left in ranks and right in ranks}
