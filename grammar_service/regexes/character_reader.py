"""Escapes and character classes in the text of a regex."""

from __future__ import annotations

import re

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.classes import CodePoints, Range, points
from grammar_service.regexes.dialect import Dialect

_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_OTHER_DIALECTS = ("&&", "--", "~~", "||")


class CharacterReader:
    """Reads one text; each method takes where to begin, and returns where it has ended too."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._shorthands = dialect.shorthands

    def escape(self, at: int) -> tuple[CodePoints, int]:
        """What the backslash at `at` begins. Raises InvalidGrammar, UnsupportedGrammar."""
        char = self._text[at + 1 : at + 2]
        if char in self._shorthands:
            return self._shorthands[char], at + 2
        if char in _CONTROL:
            return points(_CONTROL[char]), at + 2
        if code := _CODE.match(self._text, at + 1):
            value = int(code.group(1) or code.group(2), 16)
            if 0xD800 <= value <= 0xDFFF:
                raise InvalidGrammar("the regex names a surrogate")
            return CodePoints.of([(value, value)]), code.end()
        if not char:
            raise InvalidGrammar("the regex ends in a backslash")
        if char.isalnum():
            raise UnsupportedGrammar(f"regex: {_meaning(char)} is not supported: '\\{char}'")
        return points(char), at + 2

    def character_class(self, at: int) -> tuple[CodePoints, int]:
        """What the bracket at `at` opens. Raises InvalidGrammar, UnsupportedGrammar."""
        negated = self._text.startswith("^", at + 1)
        at += 1 + negated
        if self._text.startswith("]", at):
            raise UnsupportedGrammar("regex: `]` must be escaped at the start of a character class")
        ranges: list[Range] = []
        while not self._text.startswith("]", at):
            low, at = self._member(at)
            if self._text.startswith("-", at) and self._text[at + 1 : at + 2] not in ("]", ""):
                high, at = self._member(at + 1)
                ranges.append(_range(low, high))
            else:
                ranges.extend(low.ranges)
        chosen = CodePoints.of(ranges)
        return chosen.complement() if negated else chosen, at + 1

    def _member(self, at: int) -> tuple[CodePoints, int]:
        char = self._text[at : at + 1]
        if not char:
            raise InvalidGrammar("the regex has an unclosed character class")
        if char == "\\":
            return self.escape(at)
        if char == "[" or self._text[at : at + 2] in _OTHER_DIALECTS:
            raise UnsupportedGrammar("regex: `[`, `&&`, `--`, `~~` and `||` must be escaped inside a character class")
        return points(char), at + 1


def _range(low: CodePoints, high: CodePoints) -> Range:
    if len(low.ranges) != 1 or len(high.ranges) != 1 or low.ranges[0][0] != low.ranges[0][1] or high.ranges[0][0] != high.ranges[0][1]:
        raise InvalidGrammar("the regex has a character range between things that are not characters")
    first, last = low.ranges[0][0], high.ranges[0][0]
    if first > last:
        raise InvalidGrammar("the regex has a character range whose ends are swapped")
    return first, last


def _meaning(char: str) -> str:
    if char.isdigit() or char == "k":
        return "a back-reference"
    return {"b": "a word boundary", "B": "a word boundary", "p": "a Unicode property", "P": "a Unicode property"}.get(char, "this escape")
