"""Language models of a few tokens, made of a seed: the next token depends on the last two. A draft is its target, blurred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIZE = 9
END = 0


class ToyLanguage:
    """`table`: logits float32 [SIZE, SIZE, SIZE] by the last two tokens; -inf where a grammar forbids. `made`: how, for who reads of it."""

    def __init__(self, table: NDArray[np.float32], made: str) -> None:
        self.table = table
        self._made = made

    def __repr__(self) -> str:
        return self._made

    @classmethod
    def of(cls, seed: int, end: float = 0.0) -> ToyLanguage:
        """`end` is added to the logit of the end token."""
        table = np.random.default_rng(seed).normal(size=(SIZE, SIZE, SIZE)).astype(np.float32)
        table[..., END] += end
        return cls(table, f"ToyLanguage.of({seed}, {end})")

    def blurred(self, seed: int, by: float) -> ToyLanguage:
        noise = np.random.default_rng(seed).normal(size=self.table.shape).astype(np.float32)
        return ToyLanguage(self.table + np.float32(by) * noise, f"{self._made}.blurred({seed}, {by})")

    def masked(self, seed: int, share: float) -> ToyLanguage:
        """Forbids that share of the tokens, but never all: a mask of the same seed is the same mask."""
        allowed = np.random.default_rng(seed).random(self.table.shape) >= share
        allowed[..., 1] |= ~allowed.any(axis=-1)
        return ToyLanguage(np.where(allowed, self.table, np.float32(-np.inf)), f"{self._made}.masked({seed}, {share})")

    def next(self, text: Sequence[int]) -> NDArray[np.float32]:
        last, before = text[-1] if text else 1, text[-2] if len(text) > 1 else 1
        row: NDArray[np.float32] = self.table[before, last]
        return row

    def logits(self, texts: Sequence[tuple[int, ...]], last: Sequence[int]) -> list[NDArray[np.float32]]:
        return [
            np.stack([self.next(text[: len(text) - n]) for n in range(count - 1, -1, -1)]) for text, count in zip(texts, last, strict=True)
        ]
