"""Character classes in a grammar of xgrammar (0.2.8): a flag for "all but these", then pairs of first and last code point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_CHARACTERS = 0x110000 - 0x800
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


def characters(content: Sequence[int]) -> int:
    """How many characters a class has. Surrogates are none."""
    negative, *ends = content
    named = sum(last - first + 1 - _surrogates(first, last) for first, last in _joined(zip(ends[::2], ends[1::2], strict=True)))
    return _CHARACTERS - named if negative else named


def _surrogates(first: int, last: int) -> int:
    return max(0, min(last, _LAST_SURROGATE) - max(first, _FIRST_SURROGATE) + 1)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers in ranges that do not overlap."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        elif first <= last:
            joined.append((first, last))
    return joined
