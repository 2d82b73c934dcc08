"""Escapes and character classes in the text of a regex."""

from __future__ import annotations

import re

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.classes import CodePoints, Range, points
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.properties import code_points_with

_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_ECMA_CODE = re.compile(
    r"u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|u\{0*(?P<point>[0-9A-Fa-f]{1,6})\}|c(?P<control>[A-Za-z])|(?P<nul>0)(?![0-9])"
)
_PROPERTY = re.compile(r"([pP])\{(\w+)(?:=(\w+))?\}", re.ASCII)
_OTHER_DIALECTS = ("&&", "--", "~~", "||")
_POSIX = ("[:", "[=", "[.")


class CharacterReader:
    """Reads one text; each method takes where to begin, and returns where it has ended too."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._shorthands = dialect.shorthands
        self._is_ecma = dialect is Dialect.ECMA

    def escape(self, at: int) -> tuple[CodePoints, int]:
        """What the backslash at `at` begins. Raises InvalidGrammar, UnsupportedGrammar."""
        char = self._text[at + 1 : at + 2]
        if char in self._shorthands:
            return self._shorthands[char], at + 2
        if char in _CONTROL:
            return points(_CONTROL[char]), at + 2
        if found := _PROPERTY.match(self._text, at + 1):
            chosen = code_points_with(found[2], found[3])
            return (chosen.complement() if found[1] == "P" else chosen), found.end()
        if self._is_ecma and (code_point := self._ecma_escape(at)):
            return code_point
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

    def _ecma_escape(self, at: int) -> tuple[CodePoints, int] | None:
        """Escapes of code points that only ECMA-262 has, with its `u` flag."""
        if (found := _ECMA_CODE.match(self._text, at + 1)) is None:
            return None
        if found["high"]:
            value = 0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00
        elif found["point"]:
            value = int(found["point"], 16)
        else:
            value = ord(found["control"]) % 32 if found["control"] else 0
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise InvalidGrammar("the regex names a code point that no text holds")
        return CodePoints.of([(value, value)]), found.end()

    def character_class(self, at: int) -> tuple[CodePoints, int]:
        """What the bracket at `at` opens. Raises InvalidGrammar, UnsupportedGrammar."""
        negated = self._text.startswith("^", at + 1)
        at += 1 + negated
        if self._text.startswith("]", at) and not (self._is_ecma and negated):
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
        char, pair = self._text[at : at + 1], self._text[at : at + 2]
        if not char:
            raise InvalidGrammar("the regex has an unclosed character class")
        if char == "\\":
            # A backspace: what `\b` means in a class, in both dialects.
            return (points("\b"), at + 2) if pair == r"\b" else self.escape(at)
        if pair in _POSIX or (not self._is_ecma and (char == "[" or pair in _OTHER_DIALECTS)):
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
