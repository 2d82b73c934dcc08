"""Tokens that are made by a merge which ranks before one that makes its operands, as SentencePiece's runs of spaces are.

Such a merge comes at once when its operands are there, whatever its own rank. What of another token is there meanwhile depends on the
highest rank so far, the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grammar_service.canonical.merges import NEVER, Ints, MergeTable


@dataclass(frozen=True, slots=True)
class Stage:
    """Of a token on its way: what stands at its `left` and its `right` edge, the highest rank so far (-1: none), and the `next` one."""

    left: int
    right: int
    level: int
    next: int


class LateTokens:
    """`letters`: of each such token; there are few."""

    def __init__(self, letters: Mapping[int, Sequence[int]], merges: MergeTable) -> None:
        self._merges = merges
        self._stages = {token: [*_stages(spelled, merges)] for token, spelled in letters.items()}
        listed = [(stage.left, stage.level, stage.next, token) for token, stages in self._stages.items() for stage in stages]
        self._left, self._level, self._next, self._of = np.array(listed, np.int64).reshape(-1, 4).T
        self._behind_late = {one: [other for other in letters if _merge(letters[one], letters[other], merges)] for one in letters}

    def __contains__(self, token: int) -> bool:
        return token in self._stages

    def stages(self, token: int) -> Sequence[Stage]:
        return self._stages[token]

    def behind_late(self, token: int) -> Sequence[int]:
        """Those that merge with one of them before them."""
        return self._behind_late[token]

    def behind(self, edges: Iterable[tuple[int, int, int]]) -> list[int]:
        """Those that merge with any other token before them. `edges`: what stands at its right edge, the rank that makes that, and the one
        that uses it up."""
        found: set[int] = set()
        for token, made, used in edges if self._stages else ():
            rank, _ = self._merges.find(np.full(len(self._left), token), self._left)
            there = (made <= np.maximum(self._level, self._next)) & (used > np.maximum(self._level, rank))
            found |= {*self._of[(rank <= self._next) & there & (rank < NEVER)].tolist()}
        return sorted(found)


def _stages(letters: Sequence[int], merges: MergeTable) -> Iterator[Stage]:
    """Until it is done."""
    level = -1
    for parts, rank in _run(letters, merges):
        yield Stage(int(parts[0]), int(parts[-1]), level, rank)
        level = max(level, rank)


def _merge(left: Sequence[int], right: Sequence[int], merges: MergeTable) -> bool:
    """Whether an encoder merges across two tokens' letters."""
    *_, (together, _) = _run([*left, *right], merges)
    apart = [[*_run(letters, merges)][-1][0] for letters in (left, right)]
    return not np.array_equal(together, np.concatenate(apart))


def _run(letters: Sequence[int], merges: MergeTable) -> Iterator[tuple[Ints, int]]:
    """What stands there before each merge, and its rank; NEVER at the end."""
    parts = np.array(letters, np.int64)
    while True:
        ranks, wholes = merges.find(parts[:-1], parts[1:])
        at = int(ranks.argmin()) if len(ranks) else 0
        rank = int(ranks[at]) if len(ranks) else int(NEVER)
        yield parts, rank
        if rank == NEVER:
            return
        parts = np.concatenate([parts[:at], wholes[at : at + 1], parts[at + 2 :]])
