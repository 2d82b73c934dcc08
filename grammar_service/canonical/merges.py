"""A table of merges, and how each token is made by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grammar_service.errors import UnsupportedGrammar

Ints = npt.NDArray[np.int64]
NEVER = np.int64(1 << 60)
"""The rank of a pair that no merge has."""
_LENGTHS = (8, 16, 32)
"""Tokens of up to so many letters are encoded side by side."""
MOST_LATE = 64


class MergeTable:
    """Pairs of tokens and what takes their place; `left`, `right`, `rank`, `whole` int64 [merges], each pair once."""

    def __init__(self, merges: Iterable[tuple[int, int, int]], count: int) -> None:
        """`merges`: left, right and whole token in order of rank; of a pair that comes twice the last one counts. `count`: of tokens."""
        table = np.array([*merges], np.int64).reshape(-1, 3)
        self._count = count
        _, last = np.unique((table[:, 0] * count + table[:, 1])[::-1], return_index=True)
        self.rank = len(table) - 1 - last
        self.left, self.right, self.whole = (table[self.rank, column] for column in range(3))
        self._keys = self.left * count + self.right
        """Sorted."""

    def find(self, left: Ints, right: Ints) -> tuple[Ints, Ints]:
        """Rank and whole of each pair, NEVER and -1 where there is none; operands may be -1."""
        if not len(self._keys):
            return np.full(left.shape, NEVER), np.full(left.shape, -1, np.int64)
        keys = left * self._count + right
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = (self._keys[at] == keys) & (left >= 0) & (right >= 0)
        return np.where(known, self.rank[at], NEVER), np.where(known, self.whole[at], -1)


@dataclass(frozen=True, eq=False)
class Derivations:
    """The last merge by which an encoder makes each token of its own text: the operands (int64 [tokens], -1 for a single letter) and the
    rank (int64, -1 likewise). `made` bool [tokens]: the token is what its text is encoded to; others never come. `late`: those on whose way
    a merge ranks before one that makes its operands, with their letters; their operands are left out."""

    left: Ints
    right: Ints
    rank: Ints
    made: npt.NDArray[np.bool_]
    late: Mapping[int, Sequence[int]]


def derive(spelled: Sequence[Sequence[int]], merges: MergeTable) -> Derivations:
    """`spelled`: each token as the tokens of its letters; () for ids that stand for no text. The lowest rank goes first, then the leftmost.

    Raises UnsupportedGrammar: more than MOST_LATE tokens are late; training on bytes makes none.
    """
    lengths = np.array([len(letters) for letters in spelled], np.int64)
    last = np.full((len(spelled), 3), -1, np.int64)
    made = np.zeros(len(spelled), bool)
    least = 0
    for most in (*_LENGTHS, int(lengths.max(initial=0))):
        tokens = np.flatnonzero((lengths > least) & (lengths <= most))
        if len(tokens):
            last[tokens], made[tokens] = _encoded(tokens, [spelled[token] for token in tokens], most, merges)
        least = most
    last[~made] = -1
    late = _late(last, lengths)
    if len(late) > MOST_LATE:
        raise UnsupportedGrammar(f"{len(late)} of the tokenizer's merges rank before those that make their operands")
    last[late] = -1
    rank, left, right = last.T.copy()
    return Derivations(left, right, rank, made, {token: spelled[token] for token in late})


def _encoded(tokens: Ints, spelled: Sequence[Sequence[int]], most: int, merges: MergeTable) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Of each text its last merge (rank and operands), and whether it is encoded to its token."""
    parts = np.full((len(tokens), most + 1), -1, np.int64)
    for row, letters in zip(parts, spelled, strict=True):
        row[: len(letters)] = letters
    rank, whole = merges.find(parts[:, :-1], parts[:, 1:])
    last = np.full((len(tokens), 3), -1, np.int64)
    made = np.zeros(len(tokens), bool)
    rows = np.arange(len(tokens))
    columns = np.arange(most + 1)
    while len(rows):
        at = rank.argmin(axis=1)
        best = np.take_along_axis(rank, at[:, None], 1)[:, 0]
        ended = best == NEVER
        made[rows[ended]] = (parts[ended, 0] == tokens[rows[ended]]) & (parts[ended, 1] < 0)
        rows, at, best, parts, rank, whole = (column[~ended] for column in (rows, at, best, parts, rank, whole))
        here = np.arange(len(rows))
        last[rows] = np.stack([best, parts[here, at], parts[here, at + 1]], axis=1)
        merged = whole[here, at]
        shifted = np.minimum(columns + (columns > at[:, None]), most)
        parts = np.take_along_axis(parts, shifted, 1)
        parts[:, -1] = -1
        parts[here, at] = merged
        rank, whole = (np.take_along_axis(column, np.minimum(shifted[:, :-1], most - 1), 1) for column in (rank, whole))
        rank[:, -1] = NEVER
        for left in (np.maximum(at - 1, 0), at):
            rank[here, left], whole[here, left] = merges.find(parts[here, left], parts[here, left + 1])
    return last, made


def _late(last: Ints, lengths: Ints) -> list[int]:
    """Also those that others of them are part of; each token is shorter than what is made of it."""
    rank, left, right = last.T
    composed = np.flatnonzero(left >= 0)
    found = {*composed[np.maximum(rank[left[composed]], rank[right[composed]]) >= rank[composed]].tolist()}
    if found:
        for token in composed[np.argsort(lengths[composed], kind="stable")].tolist():
            if int(left[token]) in found or int(right[token]) in found:
                found.add(token)
    return sorted(found)
