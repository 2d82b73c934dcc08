"""Sets of code points as sorted ranges: what a regex's character class, shorthand or dot stands for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

LAST = 0x10FFFF
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CodePoints:
    """Code points in sorted, disjoint, inclusive ranges."""

    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, ranges: Iterable[Range]) -> CodePoints:
        merged: list[Range] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    def __contains__(self, point: int) -> bool:
        index = bisect_right(self.ranges, (point, LAST)) - 1
        return index >= 0 and point <= self.ranges[index][1]

    def complement(self) -> CodePoints:
        gaps: list[Range] = []
        start = 0
        for low, high in self.ranges:
            if low > start:
                gaps.append((start, low - 1))
            start = high + 1
        if start <= LAST:
            gaps.append((start, LAST))
        return CodePoints(tuple(gaps))

    def without_nul(self) -> CodePoints:
        return CodePoints(tuple((max(low, 1), high) for low, high in self.ranges if high))

    def minus_surrogates(self) -> CodePoints:
        """Without U+D800 to U+DFFF, which no UTF-8 text holds."""
        kept: list[Range] = []
        for low, high in self.ranges:
            if low < 0xD800:
                kept.append((low, min(high, 0xD7FF)))
            if high > 0xDFFF:
                kept.append((max(low, 0xE000), high))
        return CodePoints(tuple(kept))

    def with_surrogates(self) -> CodePoints:
        """With U+D800 to U+DFFF exactly where U+D7FF is in it: so that no automaton tells apart what no text holds."""
        low, high = 0xD800, 0xDFFF
        beside = any(first < low <= last + 1 for first, last in self.ranges)
        return CodePoints.of([*self.minus_surrogates().ranges, (low, high)]) if beside else self.minus_surrogates()


def points(text: str) -> CodePoints:
    return CodePoints.of((ord(char), ord(char)) for char in text)


DIGIT = CodePoints.of([(0x30, 0x39)])
WORD = CodePoints.of([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
ASCII_SPACE = points(" \t\n\r\f\v")
ECMA_SPACE = CodePoints.of([*ASCII_SPACE.ranges, *points("\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff").ranges, (0x2000, 0x200A)])
"""ECMA-262's `\\s`, which JSON Schema's `pattern` means."""
ANY = CodePoints.of([(0, LAST)])
NOT_NEWLINE = points("\n").complement()
NOT_LINE_TERMINATOR = points("\n\r\u2028\u2029").complement()
"""ECMA-262's dot."""
