"""Classes of characters, read byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

DEAD = -1
_NOTHING = -1
_RowOf = Callable[[npt.NDArray[Any]], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Utf8Classes:
    """Places inside of characters are numbered from 1, 0 stands between characters. `step` int32 [places, 256]: the place behind a byte, 0
    where a character ends there, whose class is in `ended` int16 of the same shape; DEAD where no character goes on so. `open` bool
    [places, classes]: those that can still come of it."""

    step: npt.NDArray[np.int32]
    ended: npt.NDArray[np.int16]
    open: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, number_of: npt.NDArray[np.int16]) -> Utf8Classes:
        """`number_of`: see `CharacterClasses`."""
        return _Builder(number_of).build()


class _Builder:
    """Places before the last byte, before the last two, and before the last three; equal ones are one."""

    def __init__(self, number_of: npt.NDArray[np.int16]) -> None:
        self._numbers = number_of
        self._rows: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]]] = []

    def build(self) -> Utf8Classes:
        root = np.full(256, DEAD, np.int32), np.full(256, _NOTHING, np.int16)
        self._rows.append(root)
        root[0][:0x80], root[1][:0x80] = 0, self._numbers[:0x80]
        last = self._ends(self._numbers.reshape(-1, 64))
        two = last.copy()
        two[:2] = DEAD  # shorter forms have these code points
        root[0][0xC2:0xE0] = two[2:0x20]
        last[: 0x800 >> 6] = DEAD
        before = self._inner(last.reshape(-1, 64))
        root[0][0xE0:0xF0] = before[:0x10]
        before[: 0x10000 >> 12] = DEAD
        padded = np.full(5 * 64, DEAD, np.int32)
        padded[: len(before)] = before
        root[0][0xF0:0xF5] = self._inner(padded.reshape(-1, 64))
        step = np.stack([row for row, _ in self._rows])
        ended = np.stack([row for _, row in self._rows])
        return Utf8Classes(step, ended, self._open(step, ended))

    def _ends(self, blocks: npt.NDArray[np.int16]) -> npt.NDArray[np.int32]:
        """A place for each block of classes by the last byte; DEAD for surrogates."""
        return self._places(blocks, lambda block: (np.where(block >= 0, 0, DEAD), block))

    def _inner(self, blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return self._places(blocks, lambda block: (block, np.full(64, _NOTHING)))

    def _places(self, blocks: npt.NDArray[Any], row_of: _RowOf) -> npt.NDArray[np.int32]:
        numbers: dict[bytes, int] = {}
        for block in blocks:
            if (key := block.tobytes()) not in numbers:
                numbers[key] = self._place(*row_of(block)) if (block >= 0).any() else DEAD
        return np.array([numbers[block.tobytes()] for block in blocks], np.int32)

    def _place(self, behind: npt.NDArray[Any], classes: npt.NDArray[Any]) -> int:
        step, ended = np.full(256, DEAD, np.int32), np.full(256, _NOTHING, np.int16)
        step[0x80:0xC0], ended[0x80:0xC0] = behind, classes
        self._rows.append((step, ended))
        return len(self._rows) - 1

    @staticmethod
    def _open(step: npt.NDArray[np.int32], ended: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
        found = np.zeros((len(step), int(ended.max()) + 1), bool)
        places, symbols = np.nonzero(ended >= 0)
        found[places, ended[places, symbols]] = True
        places, symbols = np.nonzero(step > 0)
        for _ in range(2):  # three more bytes at most
            np.logical_or.at(found, places, found[step[places, symbols]])
        return found
