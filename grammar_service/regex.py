"""The regexes that we enforce: parsed in linear time by an allow-list, and written again in a form that no backend misreads.

Two dialects: kind `regex` means `re.fullmatch` with `re.ASCII`; a JSON Schema `pattern` means ECMA-262's search. Look-around,
back-references, word boundaries, flags and anchors inside a pattern are refused, never ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from grammar_service.errors import GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.regex_classes import (
    ASCII_SPACE,
    DIGIT,
    ECMA_SPACE,
    NOT_LINE_TERMINATOR,
    NOT_NEWLINE,
    WORD,
    CodePoints,
    Range,
    points,
)

_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(,(\d*))?\}")
_OPEN_COUNT = re.compile(r"\{,\d*\}")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w*>|(?!\?))", re.ASCII)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_MAX_COUNT = 9
_SHORT = 4096
_REMEMBERED = 256
_UNICODE = CodePoints.of([(0, 0x10FFFF)])


class Dialect(Enum):
    """What `.` and `\\s` mean."""

    PYTHON_ASCII = "python"
    ECMA = "ecma"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One branch at the top level: rendered without its anchors, and whether it had them."""

    body: str
    start: bool
    end: bool


@dataclass(frozen=True, slots=True)
class Regex:
    """A parsed regex, ready to be written again."""

    alternatives: tuple[Alternative, ...]

    def full_match(self) -> str:
        """The language of `re.fullmatch`, without anchors."""
        return "|".join(alternative.body for alternative in self.alternatives)

    def anchored(self) -> str:
        """The language of a search, with anchors only where the pattern has them."""
        return "|".join(f"{'^' if a.start else ''}(?:{a.body}){'$' if a.end else ''}" for a in self.alternatives)


def parse_regex(pattern: str, dialect: Dialect) -> Regex:
    """Parse a regex. What is short is remembered: schemas repeat patterns, and formats are patterns that many schemas have.

    Raises:
        InvalidGrammar: not a regex.
        UnsupportedGrammar: a feature beyond regular languages, or one that backends misread; the message names it.
        GrammarTooLarge: a repetition count of more than nine digits.
    """
    return _remembered(pattern, dialect) if len(pattern) <= _SHORT else _Parser(pattern, dialect).parse()


@lru_cache(maxsize=_REMEMBERED)
def _remembered(pattern: str, dialect: Dialect) -> Regex:
    return _Parser(pattern, dialect).parse()


class _Parser:
    """One pass from left to right; `_branches` collects what is written for the top level."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._dot = NOT_LINE_TERMINATOR if dialect is Dialect.ECMA else NOT_NEWLINE
        space = ECMA_SPACE if dialect is Dialect.ECMA else ASCII_SPACE
        self._shorthand = {"d": DIGIT, "w": WORD, "s": space}
        self._shorthand.update({name.upper(): value.complement() for name, value in self._shorthand.items()})
        self._out: list[str] = []
        self._branches: list[Alternative] = []
        self._start = self._end = False
        self._quantifiable = False

    def parse(self) -> Regex:
        if "\0" in self._text:
            raise InvalidGrammar("the regex holds a NUL character")
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._depth:
            raise InvalidGrammar("the regex has an unclosed parenthesis")
        self._finish_branch()
        return Regex(tuple(self._branches))

    def _step(self, char: str) -> None:
        if self._end and char != "|":
            raise UnsupportedGrammar("regex: `$` is supported only at the end")
        quantifier = _QUANTIFIER.match(self._text, self._at)
        if quantifier:
            self._quantify(quantifier)
        elif _OPEN_COUNT.match(self._text, self._at):
            raise UnsupportedGrammar("regex: write `{0,n}`, since `{,n}` means different things in different dialects")
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self._bar()
        elif char in "^$":
            self._anchor(char)
        elif char == "[":
            self._emit(self._character_class())
        elif char == ".":
            self._at += 1
            self._emit(self._dot)
        elif char == "\\":
            self._emit(self._escape())
        else:
            self._at += 1
            self._emit(points(char))

    def _emit(self, what: CodePoints) -> None:
        shown = what.minus_surrogates()
        if not shown.ranges or shown.ranges == ((0, 0),):
            raise InvalidGrammar("the regex has a character class that matches nothing, or only NUL")
        self._out.append(render(shown))
        self._quantifiable = True

    def _quantify(self, match: re.Match[str]) -> None:
        if not self._quantifiable:
            raise InvalidGrammar(f"the regex has nothing to repeat at position {self._at}")
        low, comma, high = match.groups()
        if len(low or "") > _MAX_COUNT or len(high or "") > _MAX_COUNT:
            raise GrammarTooLarge("the regex has a repetition count of more than nine digits")
        if comma and high and int(high) < int(low):
            raise InvalidGrammar("the regex has a repetition whose bounds are swapped")
        self._at = match.end()
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
        elif self._text[self._at : self._at + 1] == "+":
            raise UnsupportedGrammar("regex: possessive quantifiers are not supported")
        self._out.append(match.group())
        self._quantifiable = False

    def _open(self) -> None:
        match = _GROUP.match(self._text, self._at)
        if not match:
            name = "look-around" if re.match(r"\(\?<?[=!]", self._text[self._at : self._at + 4]) else "this kind of group"
            raise UnsupportedGrammar(f"regex: {name} is not supported: {self._text[self._at : self._at + 4]!r}")
        self._at = match.end()
        self._depth += 1
        self._out.append("(?:")
        self._quantifiable = False

    def _close(self) -> None:
        if not self._depth:
            raise InvalidGrammar("the regex has an unopened parenthesis")
        self._at += 1
        self._depth -= 1
        self._out.append(")")
        self._quantifiable = True

    def _bar(self) -> None:
        self._at += 1
        if self._depth:
            self._out.append("|")
            self._quantifiable = False
        else:
            self._finish_branch()

    def _finish_branch(self) -> None:
        self._branches.append(Alternative("".join(self._out), self._start, self._end))
        self._out = []
        self._start = self._end = self._quantifiable = False

    def _anchor(self, char: str) -> None:
        if self._depth or (char == "^" and (self._out or self._start)):
            raise UnsupportedGrammar(f"regex: `{char}` is supported only at the {'start' if char == '^' else 'end'}")
        self._at += 1
        self._quantifiable = False
        if char == "^":
            self._start = True
        else:
            self._end = True

    def _escape(self) -> CodePoints:
        """The code points of the escape at the cursor, which moves past it."""
        char = self._text[self._at + 1 : self._at + 2]
        if char in self._shorthand:
            self._at += 2
            return self._shorthand[char]
        if char in _CONTROL:
            self._at += 2
            return points(_CONTROL[char])
        if code := _CODE.match(self._text, self._at + 1):
            self._at = code.end()
            value = int(code.group(1) or code.group(2), 16)
            if 0xD800 <= value <= 0xDFFF:
                raise InvalidGrammar("the regex names a surrogate")
            return CodePoints.of([(value, value)])
        if not char:
            raise InvalidGrammar("the regex ends in a backslash")
        if char.isalnum():
            raise UnsupportedGrammar(f"regex: {_reason(char)} is not supported: '\\{char}'")
        self._at += 2
        return points(char)

    def _character_class(self) -> CodePoints:
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        if self._text.startswith("]", self._at):
            raise UnsupportedGrammar("regex: `]` must be escaped at the start of a character class")
        ranges: list[Range] = []
        while not self._text.startswith("]", self._at):
            low = self._class_atom()
            if self._text.startswith("-", self._at) and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                ranges.append(_range(low, self._class_atom()))
            else:
                ranges.extend(low.ranges)
        self._at += 1
        chosen = CodePoints.of(ranges)
        return chosen.complement() if negated else chosen

    def _class_atom(self) -> CodePoints:
        char = self._text[self._at : self._at + 1]
        if not char:
            raise InvalidGrammar("the regex has an unclosed character class")
        if char == "\\":
            return self._escape()
        if char == "[" or self._text[self._at : self._at + 2] in ("&&", "--", "~~", "||"):
            raise UnsupportedGrammar("regex: `[`, `&&`, `--`, `~~` and `||` must be escaped inside a character class")
        self._at += 1
        return points(char)


def _range(low: CodePoints, high: CodePoints) -> Range:
    if len(low.ranges) != 1 or len(high.ranges) != 1 or low.ranges[0][0] != low.ranges[0][1] or high.ranges[0][0] != high.ranges[0][1]:
        raise InvalidGrammar("the regex has a character range between things that are not characters")
    first, last = low.ranges[0][0], high.ranges[0][0]
    if first > last:
        raise InvalidGrammar("the regex has a character range whose ends are swapped")
    return first, last


def _reason(char: str) -> str:
    if char.isdigit() or char == "k":
        return "a back-reference"
    return {"b": "a word boundary", "B": "a word boundary", "p": "a Unicode property", "P": "a Unicode property"}.get(char, "this escape")


def literal(text: str) -> str:
    """A regex that matches exactly a text."""
    return "".join(_character(ord(char)) for char in text)


def render(what: CodePoints) -> str:
    """A character class (or one character) that every backend reads alike."""
    if len(what.ranges) == 1 and what.ranges[0][0] == what.ranges[0][1]:
        return _character(what.ranges[0][0])
    if what.ranges[-1][1] == 0x10FFFF and what != _UNICODE.minus_surrogates():
        inner = CodePoints.of([*what.ranges, (0xD800, 0xDFFF)]).complement()
        return f"[^{_items(inner)}]"
    return f"[{_items(what)}]"


def _items(what: CodePoints) -> str:
    return "".join(_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in what.ranges)


def _character(point: int) -> str:
    char = chr(point)
    if (char.isascii() and char.isalnum()) or char in " _,:;<>=!@%&'\"`~#":
        return char
    if point == 0:
        return "\\x00"
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    if point < 0x20 or point == 0x7F:
        return f"\\x{point:02x}"
    return char if point > 0x7F else f"\\{char}"
