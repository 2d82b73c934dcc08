"""Pairs of Tekken's tokens against tiktoken's own BPE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt
import tiktoken

from grammar_service.canonical.merges import Derivations, MergeTable, derive
from grammar_service.canonical.pairs import PairTable
from grammar_service.canonical.tokenizer_rules import rules_of
from grammar_service.vocabulary.tekken import TekkenFile, tekken_folder, tekken_source
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.probes import Probed


class BytePairs:
    """tiktoken cuts a piece by the rank of what two parts make, and so do we of the vocabulary as it was converted."""

    def __init__(self, tokenizer: GrammarTokenizer, seed: int) -> None:
        self._chance = Random(seed)
        rules = rules_of((tekken_folder() / "tokenizer.json").read_text(encoding="utf-8"), tokenizer.vocab_size)
        derivations = derive(rules.spelled, rules.merges)
        self._pairs = PairTable(derivations, rules.merges)
        self._text = tokenizer.vocabulary
        self._ids = [token for token, letters in enumerate(rules.spelled) if letters]
        self._first = self._ids[0]
        self._library = _library(self._text[self._first :])
        self._merges = _operands(rules.merges, np.ones(len(rules.merges.rank), bool))
        self._early = _operands(rules.merges, _below_operands(rules.merges, derivations))
        self._ending, self._beginning = _spines(derivations)

    @property
    def early_merges(self) -> int:
        """Merges that rank below the one that makes an operand, so that both operands must be there at one time."""
        return len(self._early)

    def random(self, count: int) -> Probed:
        return self._probe((self._chance.choice(self._ids), self._chance.choice(self._ids)) for _ in range(count))

    def around_merges(self, count: int) -> Probed:
        """Tokens with the operands of a merge at the edges of their derivations that meet."""
        return self._probe(self._around(self._merges) for _ in range(count))

    def around_early_merges(self, count: int) -> Probed:
        return self._probe(self._around(self._early) for _ in range(count))

    def _around(self, merges: list[tuple[int, int]]) -> tuple[int, int]:
        left, right = self._chance.choice(merges)
        return self._chance.choice(self._ending[left]), self._chance.choice(self._beginning[right])

    def _probe(self, pairs: Iterator[tuple[int, int]]) -> Probed:
        found = Probed()
        for left, right in pairs:
            parts = self._library._encode_single_piece(self._text[left] + self._text[right])  # the one way past its regex
            canonical = parts == [left - self._first, right - self._first]
            found.tried += 1
            found.canonical += canonical
            found.wrong += canonical != self._pairs.may_follow(left, right)
        return found


def _library(tokens: Sequence[bytes]) -> tiktoken.Encoding:
    pattern = msgspec.json.decode(tekken_source().read_bytes(), type=TekkenFile).config.pattern
    ranks = {token: rank for rank, token in enumerate(tokens) if token}
    return tiktoken.Encoding(name="tekken", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _operands(merges: MergeTable, chosen: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    return [*zip(merges.left[chosen].tolist(), merges.right[chosen].tolist(), strict=True)]


def _below_operands(merges: MergeTable, derivations: Derivations) -> npt.NDArray[np.bool_]:
    return np.asarray(merges.rank < np.maximum(derivations.rank[merges.left], derivations.rank[merges.right]))


def _spines(derivations: Derivations) -> tuple[list[list[int]], list[list[int]]]:
    """Of each token, those at whose right edge it stands in their derivation, and those at whose left edge."""
    found: tuple[list[list[int]], list[list[int]]] = ([], [])
    for side, edge in zip(found, (derivations.right.tolist(), derivations.left.tolist()), strict=True):
        side += [[] for _ in edge]
        for token in range(len(edge)):
            part = token
            while part >= 0:
                side[part].append(token)
                part = edge[part]
    return found
