"""The masks of one engine step, filled and written as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends import Matcher
from grammar_service.backends.batch_fill import BatchFiller, has_failed
from model_service.masks.frames.encoding import encode_indexed
from model_service.masks.frames.header import FREE

Index = npt.NDArray[np.int32]
Row = tuple[Matcher, Sequence[int]]
"""A request's matcher, and its drafts."""


class FrameFilling:
    """For one thread; `vocab_size` tokens. Its memory grows to the largest step that it has seen."""

    def __init__(self, filler: BatchFiller, vocab_size: int) -> None:
        self._filler = filler
        self._vocab_size = vocab_size
        self._masks = torch.empty(0, (vocab_size + 31) // 32, dtype=torch.int32)

    def frame(self, rows: Sequence[Row]) -> bytes:
        """One mask more than drafts for each row: before each draft and after the last. As in vLLM, a terminated matcher and a draft of -1
        leave that mask, or those behind it, free, and a forbidden draft repeats the mask that forbids it. The matchers stay as they are.
        """
        ends = list(accumulate(len(drafts) + 1 for _, drafts in rows))
        index = np.arange(ends[-1] if ends else 0, dtype=np.int32)
        self._reserve(len(index))
        taken = [0] * len(rows)
        try:
            self._fill(rows, ends, index, taken)
        finally:
            for (matcher, _), count in zip(rows, taken, strict=True):
                if count:
                    matcher.rollback(count)
        return encode_indexed(self._masks[: len(index)], index, self._vocab_size)

    def can_fill(self, row: Row) -> bool:
        """Whether the library has not given up on the row's matcher."""
        try:
            self.frame([row])
        except (RuntimeError, ValueError):
            return False
        return True

    def _fill(self, rows: Sequence[Row], ends: list[int], index: Index, taken: list[int]) -> None:
        """A position at a time, for all rows that have one more; `taken`: drafts that each matcher has accepted."""
        left = list(range(len(rows)))
        for position in range(max((len(drafts) for _, drafts in rows), default=-1) + 1):
            here = [ends[i] - len(rows[i][1]) - 1 + position for i in left]
            open_rows = [(i, at) for i, at in zip(left, here, strict=True) if not self._ended(rows[i][0], index[at : ends[i]])]
            self._filler.fill([rows[i][0] for i, _ in open_rows], self._masks, [at for _, at in open_rows])
            if any(has_failed(rows[i][0]) for i, _ in open_rows):
                raise RuntimeError("a library has given up on a grammar")
            left = [i for i, at in open_rows if at + 1 < ends[i] and self._takes(rows[i], position, at, index[at + 1 : ends[i]])]
            for i in left:
                taken[i] += 1

    def _ended(self, matcher: Matcher, rest: Index) -> bool:
        ended = matcher.is_terminated()
        if ended:
            rest[:] = FREE
        return ended

    def _takes(self, row: Row, position: int, at: int, rest: Index) -> bool:
        """Whether the matcher takes its draft; if not, what the rest of its masks is."""
        matcher, drafts = row
        token = drafts[position]
        if token < 0:
            rest[:] = FREE
            return False
        if not matcher.accept(token):
            rest[:] = at
            return False
        return True

    def _reserve(self, rows: int) -> None:
        if len(self._masks) < rows:
            self._masks = torch.empty(rows, self._masks.shape[1], dtype=torch.int32)
