"""What may come next, by a mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_NO_TEXT = 256
Row = npt.NDArray[np.int32]


class Texts:
    """The tokens of a vocabulary (bytes by id) that have text, for reading masks."""

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        self._first = np.array([token[0] if token else _NO_TEXT for token in vocabulary], dtype=np.int16)
        has_text = np.zeros((len(vocabulary) + 31) // 32 * 32, dtype=np.uint8)
        has_text[: len(vocabulary)] = self._first != _NO_TEXT
        self._row: Row = np.packbits(has_text, bitorder="little").view(np.int32)
        self.index = {token: index for index, token in enumerate(vocabulary) if token}

    def only_stops(self, row: Row) -> bool:
        """Whether a mask row allows tokens, and none with text."""
        return bool(row.any()) and not (row & self._row).any()

    def allowed(self, row: Row | None) -> Allowed:
        """What a row allows; None stands for a state that nothing is known of."""
        if row is None:
            return Allowed(None, frozenset(range(256)), self.index)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(self._first)].astype(bool)
        counts = np.bincount(self._first[bits], minlength=_NO_TEXT)
        return Allowed(bits, frozenset(np.flatnonzero(counts[:_NO_TEXT]).tolist()), self.index)


class Allowed:
    """`first`: the bytes that can come next."""

    def __init__(self, bits: npt.NDArray[np.bool_] | None, first: frozenset[int], index: dict[bytes, int]) -> None:
        self._bits = bits
        self._index = index
        self.first = first

    def may_follow(self, text: bytes) -> bool:
        """False where the text cannot come next. It can if it is a token's; of others only what they begin with is known."""
        if self._bits is None:
            return True
        if text[0] not in self.first:
            return False
        known = (self._index.get(text[:length]) for length in range(1, len(text) + 1))
        return all(self._bits[token] for token in known if token is not None)
