"""What a tokenizer's engine takes for the members of its classes of characters: no two libraries have the same Unicode."""

from __future__ import annotations

import encodings.utf_32_le  # noqa: F401  # found by name otherwise, which a confined child cannot
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = 0x110000
_CHUNK = 1 << 16
"""Characters at a time: the engine keeps some 100 bytes about each."""


class CharacterClasses:
    """Characters that no class of `written` (as the engine reads it) tells apart are one number from 0; `digits`: neither do numerals and
    others. `number_of` int16 [code points], -1 for surrogates."""

    def __init__(self, written: Sequence[str], digits: bool) -> None:
        packed = [members_of(one) for one in written] + ([numerals()] if digits else [])
        kinds = np.zeros(POINTS, np.int64)
        for at, row in enumerate(packed):
            kinds |= np.unpackbits(row, count=POINTS).astype(np.int64) << at
        kinds[0xD800:0xE000] = -1
        known, numbers = np.unique(kinds, return_inverse=True)
        self.number_of: npt.NDArray[np.int16] = (numbers - 1).astype(np.int16)
        self.count = len(known) - 1
        self._of = {one: frozenset(np.flatnonzero(known[1:] >> at & 1).tolist()) for at, one in enumerate(written)}
        self.digits = frozenset(np.flatnonzero(known[1:] >> len(written) & 1).tolist()) if digits else frozenset[int]()

    def of(self, written: str) -> frozenset[int]:
        """The numbers of one of the classes."""
        return self._of[written]


@lru_cache(maxsize=64)
def members_of(written: str) -> npt.NDArray[np.uint8]:
    """Which code points a class matches, as packed bits, surrogates not among them: what is gone when all matches are taken away."""
    remover = normalizers.Replace(Regex(f"(?:{written})+"), "")  # in runs: a match of its own for each takes three times as long
    matched = np.zeros(POINTS, bool)
    for text in all_characters():
        matched[np.frombuffer(text.encode("utf-32-le"), np.uint32)] = True
        matched[np.frombuffer(remover.normalize_str(text).encode("utf-32-le"), np.uint32)] = False
    return np.packbits(matched)


@lru_cache(maxsize=1)
def numerals() -> npt.NDArray[np.uint8]:
    """What the pre-tokenizer `Digits` takes for a digit, as packed bits: these are pieces of their own."""
    matched = np.zeros(POINTS, bool)
    cutter = pre_tokenizers.Digits(individual_digits=True)
    for text in all_characters():
        # Of each run of others, whatever its length, one piece is made, so that a run of one looks like a digit.
        single = [piece for piece, _ in cutter.pre_tokenize_str(text) if len(piece) == 1]
        matched[[ord(char) for char in single if len(cutter.pre_tokenize_str(char + char)) == 2]] = True
    return np.packbits(matched)


def all_characters() -> Iterator[str]:
    """In texts that follow one another."""
    for low in range(0, POINTS, _CHUNK):
        points = np.arange(low, low + _CHUNK, dtype=np.uint32)
        yield points[(points < 0xD800) | (points >= 0xE000)].tobytes().decode("utf-32-le")
