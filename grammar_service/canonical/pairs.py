"""Which token may stand behind which, where no boundary stands between them.

A sequence of tokens is what an encoder of merges makes of its text exactly if each two neighbours are, whatever the table: until a
merge crosses the place between two of them, what happens to these two is what would happen to them alone, so that it crosses in both
cases or in neither.

Two tokens x and y are merged across if some token r at the right edge of x's derivation and some l at the left edge of y's have a merge of
rank k, and are there at the same time while it is the next one: k and l's own rank are less than the rank that uses r up, and k and r's own
rank no more than the one that uses l up, since the leftmost goes first among equals.

Tokens numbered along the forest of left operands, those that are made late first, make all y of one such merge an interval.
"""

from __future__ import annotations

import numpy as np

from grammar_service.canonical.merges import Derivations, Ints, MergeTable

_NEVER = np.int64(1 << 60)
"""The rank that uses a whole token up."""


class PairTable:
    """For all pairs of a vocabulary of V ids; 60 bytes a merge and 40 a token."""

    def __init__(self, derivations: Derivations, merges: MergeTable) -> None:
        self._derivations = derivations
        self._right: list[int] = derivations.right.tolist()
        self._rank: list[int] = derivations.rank.tolist()
        children = _Children(derivations)
        self._place = children.place
        self._at = np.argsort(children.place[derivations.made], kind="stable")
        self._at = np.flatnonzero(derivations.made)[self._at]
        use = derivations.made[merges.left] & derivations.made[merges.right]
        left, right, ranks = merges.left[use], merges.right[use], merges.rank[use]
        before = np.maximum(ranks, derivations.rank[right])
        not_before = np.maximum(ranks, derivations.rank[left])
        order = np.lexsort((before, left))
        self._before = before[order]
        self._low = children.place[right][order]
        self._high = children.end(right, not_before)[order]
        self._starts: list[int] = np.searchsorted(left[order], np.arange(len(self._right) + 1)).tolist()

    @property
    def size_bytes(self) -> int:
        arrays = (self._before, self._low, self._high, self._place, self._at)
        return sum(array.nbytes for array in arrays) + 8 * (len(self._starts) + len(self._right) + len(self._rank))

    def may_follow(self, token: int, following: int) -> bool:
        """Two tokens that are made."""
        place = self._place[following]
        return not any(((low <= place) & (place < high)).any() for low, high in self._intervals(token))

    def forbidden(self, token: int) -> Ints:
        """The tokens that may not follow, some of them more than once."""
        spans = [*self._intervals(token)]
        if not spans:
            return np.empty(0, np.int64)
        low, high = (np.concatenate(side) for side in zip(*spans, strict=True))
        lengths = high - low
        begins = np.cumsum(lengths) - lengths
        found: Ints = self._at[np.repeat(low - begins, lengths) + np.arange(int(lengths.sum()))]
        return found

    def _intervals(self, token: int) -> list[tuple[Ints, Ints]]:
        """Of places, the end not included."""
        found: list[tuple[Ints, Ints]] = []
        used_up: int = int(_NEVER)
        while token >= 0:
            start, end = self._starts[token], self._starts[token + 1]
            if end > start:
                end = start + int(np.searchsorted(self._before[start:end], used_up, "left"))
                found.append((self._low[start:end], self._high[start:end]))
            used_up = self._rank[token]
            token = self._right[token]
        return found


class _Children:
    """The forest in which a token's parent is its left operand. `place` int64 [V]: its number in depth-first order, -1 for tokens that are
    not made; below one, what is made by higher ranks comes first."""

    def __init__(self, derivations: Derivations) -> None:
        left, rank = derivations.left, derivations.rank
        made = np.flatnonzero(derivations.made)
        size = _sizes(derivations)
        composed = made[left[made] >= 0]
        order = composed[np.lexsort((-rank[composed], left[composed]))]
        self._size_before = np.concatenate([[0], np.cumsum(size[order])])
        self._first = np.searchsorted(left[order], np.arange(len(left)), "left")
        self._last = np.searchsorted(left[order], np.arange(len(left)), "right")
        self._span = np.int64(rank.max(initial=0) + 2)
        self._keys = left[order].astype(np.int64) * self._span + (self._span - 1 - rank[order])
        self.place = np.full(len(left), -1, np.int64)
        roots = made[left[made] < 0]
        self.place[roots] = np.cumsum(size[roots]) - size[roots]
        offset = np.zeros(len(left), np.int64)
        offset[order] = 1 + self._size_before[:-1] - self._size_before[self._first[left[order]]]
        # By rank, every token comes behind its parent.
        by_rank = composed[np.argsort(rank[composed])]
        place = self.place.tolist()
        for token, parent, step in zip(by_rank.tolist(), left[by_rank].tolist(), offset[by_rank].tolist(), strict=True):
            place[token] = place[parent] + step
        self.place = np.array(place, np.int64)

    def end(self, tokens: Ints, rank: Ints) -> Ints:
        """The places behind each token and what is made of it on its left by that rank or a higher one."""
        keys = tokens * self._span + (self._span - 1 - np.minimum(rank, self._span - 1))
        last = np.clip(np.searchsorted(self._keys, keys, "right"), self._first[tokens], self._last[tokens])
        found: Ints = self.place[tokens] + 1 + self._size_before[last] - self._size_before[self._first[tokens]]
        return found


def _sizes(derivations: Derivations) -> Ints:
    """How many tokens each token's tree has."""
    composed = np.flatnonzero(derivations.left >= 0)
    order = composed[np.argsort(-derivations.rank[composed])]
    size = [1] * len(derivations.left)
    for token, parent in zip(order.tolist(), derivations.left[order].tolist(), strict=True):
        size[parent] += size[token]
    return np.array(size, np.int64)
