"""Sets of tokens as rows of bits, the latest ones kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.int32]
"""int32 [ceil(V/32)], bit set = in it."""
Bits = Sequence[tuple[int, np.int32]]
"""Words of a row, and a bit of each."""


def packed(allowed: npt.NDArray[np.bool_]) -> Row:
    """bool [V] as a row; what is behind the last token is clear."""
    padded = np.zeros((len(allowed) + 31) // 32 * 32, np.uint8)
    padded[: len(allowed)] = allowed
    return np.packbits(padded, bitorder="little").view(np.int32)


def bits_of(tokens: Iterable[int]) -> Bits:
    """Where tokens stand in a row."""
    return [(token >> 5, np.uint32(1 << (token & 31)).astype(np.int32)) for token in tokens]


class PackedRows:
    """Rows by key, up to `max_bytes` of them; what was not asked for longest goes first. Rows are not to be written to. For several
    threads: a row may be made twice."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rows: OrderedDict[Hashable, Row] = OrderedDict()
        self._lock = Lock()
        self.size_bytes = 0

    def get(self, key: Hashable, make: Callable[[], Row]) -> Row:
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
                return row
        row = make()
        row.flags.writeable = False
        with self._lock:
            self._keep(key, row)
        return row

    def _keep(self, key: Hashable, row: Row) -> None:
        if (before := self._rows.pop(key, None)) is not None:
            self.size_bytes -= before.nbytes
        self._rows[key] = row
        self.size_bytes += row.nbytes
        while self.size_bytes > self._max_bytes and len(self._rows) > 1:
            self.size_bytes -= self._rows.popitem(last=False)[1].nbytes
