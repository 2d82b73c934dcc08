"""Estimates what a JSON text costs to parse, without parsing it. A parser holds the GIL for its whole run, and 2 MiB of JSON may be 300,000
numbers of the slowest kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deployments.errors import over_limit

COSTLY = 4
"""Values that a member, an object or an array counts as: to build one takes 0.3 µs, a number under 0.1 µs (msgspec 0.22)."""
EXPONENT, LONG_EXPONENT, LONG_DIGIT = 8, 100, 2
"""Values that a number counts for in addition. One with an exponent takes 0.8 µs to write. One with an exponent of three digits may be near
the ends of the range of doubles, where it takes 7 to 13 µs to read. For each digit beyond fifteen: the time grows with their square."""
_CASE = 0xFF ^ ord("[") ^ ord("{")
"""Without this bit, brackets and braces are the same."""
_LOWER = np.uint8(ord("a") - ord("A"))
MOST_VALUES_IN_TEXT = 100_000
"""Values in a JSON text inside of a field, which `limits.max_body_values` does not count. The standard library parses them in 20 ms."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a text in JSON, what stands in its strings left out. Each value but the first of its array or object has a comma in front, and
    each of those a bracket; each member has a colon, too."""

    commas: int
    brackets: int
    colons: int
    nesting: int
    number_cost: int = 0

    @property
    def values(self) -> int:
        """No fewer than there are, some counted for more."""
        return self.commas + self.brackets + (COSTLY - 1) * (self.brackets + self.colons) + self.number_cost


def shape_of(raw: bytes) -> Shape:
    """Of what is no JSON, it is that of the text before its fault or more."""
    # Outside of strings there are no escapes, and inside of them the first backslash of a row begins one.
    plain = raw.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in raw else raw
    text = np.frombuffer(plain, np.uint8)
    inside = np.cumsum(text == ord('"'), dtype=np.uint8) & 1
    bare = text[inside == 0]
    opening = (bare & _CASE) == ord("[") & _CASE
    closing = (bare & _CASE) == ord("]") & _CASE
    levels = np.cumsum(opening.view(np.int8) - closing.view(np.int8), dtype=np.int32)
    commas, colons = np.count_nonzero(bare == ord(",")), np.count_nonzero(bare == ord(":"))
    return Shape(int(commas), int(np.count_nonzero(opening)), int(colons), int(levels.max(initial=0)), number_cost(bare))


def number_cost(text: npt.NDArray[np.uint8]) -> int:
    """Values that numbers count for in addition, because of exponents and long runs of digits."""
    digits = (text - ord("0") < 10) | (text == ord("."))
    for width in (1, 2, 4, 8):  # then of runs of 2, 4, 8 and 16 digits, the first ones
        digits = digits[:-width] & digits[width:]
    places = np.flatnonzero((text | _LOWER) == ord("e")) + 1
    padded = np.append(text, np.zeros(4, np.uint8))
    places += np.isin(padded[places], (ord("+"), ord("-")))
    first, *others = ((padded[places + each] - ord("0")) < 10 for each in range(3))
    of_three = np.count_nonzero(first & others[0] & others[1])
    return LONG_DIGIT * int(np.count_nonzero(digits)) + EXPONENT * int(np.count_nonzero(first)) + (LONG_EXPONENT - EXPONENT) * int(of_three)


def check_json_text(text: str, field: str) -> None:
    """Raises ApiError where the text has more than `MOST_VALUES_IN_TEXT` JSON values."""
    if count_values([text]) > MOST_VALUES_IN_TEXT:
        raise over_limit(
            field, f"The text in '{field}' may have {MOST_VALUES_IN_TEXT:,} values; arrays, objects and members count as {COSTLY}."
        )


def count_values(texts: Sequence[str]) -> int:
    """The number of JSON values in all texts, or 0 if the texts are too short to exceed the limit: one count takes 30 µs."""
    if LONG_EXPONENT * sum(map(len, texts)) <= MOST_VALUES_IN_TEXT:
        return 0
    return shape_of(",".join(map(_close_string, texts)).encode("utf-8", "surrogatepass")).values


def _close_string(text: str) -> str:
    """Close an unterminated string, so that it does not hide the values of the next text."""
    plain = text.replace(r"\\", "..").replace(r"\"", "..").replace("\\", ".") if "\\" in text else text
    return f'{plain}"' if plain.count('"') % 2 else plain
