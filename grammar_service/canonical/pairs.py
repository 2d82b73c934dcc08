"""Which token may stand behind which, where no boundary stands between them.

A sequence of tokens is what an encoder of merges makes of its text exactly if each two neighbours are, whatever the table: until a
merge crosses the place between two of them, what happens to these two is what would happen to them alone, so that it crosses in both
cases or in neither.

Two tokens x and y are merged across if some token r at the right edge of x's derivation and some l at the left edge of y's have a merge of
rank k, and are there at the same time while it is the next one: k and l's own rank are less than the rank that uses r up, and k and r's own
rank no more than the one that uses l up, since the leftmost goes first among equals.

Few tokens are made otherwise, and looked at one by one (`LateTokens`).

Tokens numbered along the forest of left operands, those that are made late first, make all y of one such merge an interval.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from grammar_service.canonical.late_tokens import LateTokens
from grammar_service.canonical.merges import NEVER, Derivations, Ints, MergeTable


class PairTable:
    """For all pairs of a vocabulary of V ids; 60 bytes a merge and 40 a token."""

    def __init__(self, derivations: Derivations, merges: MergeTable) -> None:
        self._right: list[int] = derivations.right.tolist()
        self._rank: list[int] = derivations.rank.tolist()
        self._late = LateTokens(derivations.late, merges)
        made = derivations.made.copy()
        made[[*derivations.late]] = False
        children = _Children(derivations, made)
        self._place = children.place
        self._at = np.argsort(children.place[made], kind="stable")
        self._at = np.flatnonzero(made)[self._at]
        use = made[merges.left] & made[merges.right]
        left, right, ranks = merges.left[use], merges.right[use], merges.rank[use]
        before = np.maximum(ranks, derivations.rank[right])
        not_before = np.maximum(ranks, derivations.rank[left])
        order = np.lexsort((before, left))
        self._before = before[order]
        self._low = children.place[right][order]
        self._high = children.end(right, not_before)[order]
        self._starts: list[int] = np.searchsorted(left[order], np.arange(len(self._right) + 1)).tolist()
        self._behind_late = {token: self._found_behind_late(token, merges, made, children) for token in derivations.late}

    @property
    def size_bytes(self) -> int:
        arrays = (self._before, self._low, self._high, self._place, self._at)
        return sum(array.nbytes for array in arrays) + 8 * (len(self._starts) + len(self._right) + len(self._rank))

    def may_follow(self, token: int, following: int) -> bool:
        """Two tokens that are made."""
        if token in self._late:
            return not self._behind_late[token][following]
        if following in self._late:
            return following not in self._late.behind(self._edges(token))
        place = self._place[following]
        return not any(((low <= place) & (place < high)).any() for low, high in self._intervals(token))

    def forbidden(self, token: int) -> Ints:
        """The tokens that may not follow, some of them more than once."""
        if token in self._late:
            return np.flatnonzero(self._behind_late[token])
        late = np.array(self._late.behind(self._edges(token)), np.int64)
        spans = [*self._intervals(token)]
        if not spans:
            return late
        low, high = (np.concatenate(side) for side in zip(*spans, strict=True))
        lengths = high - low
        begins = np.cumsum(lengths) - lengths
        return np.concatenate([late, self._at[np.repeat(low - begins, lengths) + np.arange(int(lengths.sum()))]])

    def _intervals(self, token: int) -> list[tuple[Ints, Ints]]:
        """Of places, the end not included."""
        found: list[tuple[Ints, Ints]] = []
        for edge, _, used_up in self._edges(token):
            start, end = self._starts[edge], self._starts[edge + 1]
            if end > start:
                end = start + int(np.searchsorted(self._before[start:end], used_up, "left"))
                found.append((self._low[start:end], self._high[start:end]))
        return found

    def _edges(self, token: int) -> Iterator[tuple[int, int, int]]:
        """What stands at its right edge, the last first, with the rank that makes it and the one that uses it up."""
        used_up = int(NEVER)
        while token >= 0:
            yield token, self._rank[token], used_up
            used_up = self._rank[token]
            token = self._right[token]

    def _found_behind_late(self, token: int, merges: MergeTable, made: npt.NDArray[np.bool_], children: _Children) -> npt.NDArray[np.bool_]:
        """bool [V]: what may not follow a late token."""
        ends = np.zeros(len(self._at) + 1, np.int64)
        ranks = np.array(self._rank)
        for stage in self._late.stages(token):
            use = (merges.left == stage.right) & made[merges.right] & (merges.rank < stage.next)
            use &= ranks[merges.right] < max(stage.level, stage.next)
            np.add.at(ends, children.place[merges.right[use]], 1)
            np.add.at(ends, children.end(merges.right[use], np.maximum(merges.rank[use], stage.level)), -1)
        found = np.zeros(len(made), bool)
        found[self._at[np.cumsum(ends[:-1]) > 0]] = True
        found[self._late.behind_late(token)] = True
        return found


class _Children:
    """The forest of the tokens that are `is_made`, in which a token's parent is its left operand. `place` int64 [V]: its number in
    depth-first order, -1 for all others; below one, what is made by higher ranks comes first."""

    def __init__(self, derivations: Derivations, is_made: npt.NDArray[np.bool_]) -> None:
        left, rank = derivations.left, derivations.rank
        made = np.flatnonzero(is_made)
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
