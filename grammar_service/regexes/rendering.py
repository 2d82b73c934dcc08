"""Characters as regexes that every backend reads alike."""

from __future__ import annotations

from grammar_service.regexes.classes import CodePoints

_UNICODE = CodePoints.of([(0, 0x10FFFF)]).minus_surrogates()
_PLAIN = " _,:;<>=!@%&'\"`~#"
_CONTROL = {"\0": r"\x00", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def literal(text: str) -> str:
    """A regex that matches exactly a text."""
    return "".join(_character(ord(char)) for char in text)


def character_class(points: CodePoints) -> str:
    """A character class, or one character; `points` are some, and no surrogates."""
    if len(points.ranges) == 1 and points.ranges[0][0] == points.ranges[0][1]:
        return _character(points.ranges[0][0])
    if points.ranges[-1][1] == 0x10FFFF and points != _UNICODE:
        inner = CodePoints.of([*points.ranges, (0xD800, 0xDFFF)]).complement()
        return f"[^{_items(inner)}]"
    return f"[{_items(points)}]"


def _items(points: CodePoints) -> str:
    return "".join(_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in points.ranges)


def _character(point: int) -> str:
    char = chr(point)
    if (char.isascii() and char.isalnum()) or char in _PLAIN:
        return char
    if char in _CONTROL:
        return _CONTROL[char]
    if point < 0x20 or point == 0x7F:
        return f"\\x{point:02x}"
    return char if point > 0x7F else f"\\{char}"
