"""Tokens that are taken away from a bitmask row together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.int32]
_DENSE = 256
_FEW = 16


class TokenSet(NamedTuple):
    """Some tokens as the words of a bitmask row that they are in, each once; `bits`: theirs in those words, `others`: all but theirs;
    `none`: the bytes of as many words without bits."""

    tokens: npt.NDArray[np.intp]
    words: npt.NDArray[np.intp] | slice
    bits: Row
    others: Row
    none: bytes

    def clear(self, row: Row) -> None:
        """Forbid them: int32 [ceil(V/32)]."""
        row[self.words] &= self.others

    def is_any(self, row: Row) -> bool:
        """Whether a row allows one of them."""
        # Bytes are sooner compared than numbers are asked for any that is not zero.
        return bool(self.none) and bool((row[self.words] & self.bits).tobytes() != self.none)

    def among(self, row: Row) -> Iterator[int]:
        """Those that a row allows."""
        yield from self.tokens[(row[self.tokens >> 5] >> (self.tokens & 31) & 1) != 0].tolist()


class GrowingSet:
    """Tokens that come and go one by one, last in, first out, all different. A row is as fast read whether they are many or few."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._others: Row | None = None

    def add(self, token: int) -> None:
        self._tokens.append(token)
        if self._others is not None:
            self._others[token >> 5] &= ~_bit(token)

    def drop(self) -> None:
        """The one that was added last."""
        token = self._tokens.pop()
        if self._others is not None:
            self._others[token >> 5] |= _bit(token)

    def clear(self, row: Row) -> None:
        """Forbid them: int32 [ceil(V/32)]."""
        if len(self._tokens) > _FEW and self._others is None:
            self._others = np.full(len(row), -1, np.int32)
            for token in self._tokens:
                self._others[token >> 5] &= ~_bit(token)
        if self._others is not None:
            row &= self._others
            return
        for token in self._tokens:
            forbid(row, token)


def forbid(row: Row, token: int) -> None:
    """Clear the token's bit."""
    row[token >> 5] &= ~_bit(token)


def _bit(token: int) -> np.int32:
    return _BITS[token & 31]


_BITS: list[np.int32] = list((np.uint32(1) << np.arange(32, dtype=np.uint32)).view(np.int32))


def token_set(tokens: Iterable[int]) -> TokenSet:
    listed = np.unique(np.array(list(tokens), dtype=np.intp))
    last = int(listed[-1]) >> 5 if len(listed) else -1
    row = np.zeros(last + 1, dtype=np.uint32)
    np.bitwise_or.at(row, listed >> 5, np.uint32(1) << (listed & 31).astype(np.uint32))
    words = np.flatnonzero(row)
    # A row is faster read as a whole than by many of its words.
    chosen: npt.NDArray[np.intp] | slice = slice(0, last + 1) if len(words) > _DENSE else words
    bits = row[chosen].view(np.int32)
    return TokenSet(listed, chosen, bits, ~bits, bytes(bits.nbytes))
