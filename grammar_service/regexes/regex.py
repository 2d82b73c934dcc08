"""The regexes that we enforce: parsed in linear time by an allow-list.

Back-references, flags and possessive quantifiers are refused, never ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from grammar_service.errors import GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.regexes.character_reader import CharacterReader
from grammar_service.regexes.classes import WORD, points
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.syntax import (
    START,
    Alternation,
    Assertion,
    Branch,
    Characters,
    Concatenation,
    Node,
    Regex,
    Repetition,
)

_QUANTIFIER = re.compile(r"[*+?]|\{([0-9]+)(,([0-9]*))?\}")
_OPEN_COUNT = re.compile(r"\{,[0-9]*\}")
_GROUP = re.compile(r"\((?:\?(?P<assertion><?[=!])|\?:|\?P?<[^\W\d][\w$]*>|(?!\?))")
_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_MAX_DIGITS = 9
MAX_ASSERTION_DEPTH = 8
"""Look-around inside look-around."""
_SHORT = 2048
"""Characters of a regex that is remembered: the longest format's has 1,813."""
_REMEMBERED = 128
"""A tree takes up to 260 bytes a character, where no two are alike: all of them 67 MB at most."""


def parse_regex(pattern: str, dialect: Dialect) -> Regex:
    """Parse a regex. What is short is remembered: schemas repeat patterns, and formats are patterns that many schemas have.

    Raises:
        InvalidGrammar: not a regex.
        UnsupportedGrammar: a feature beyond regular languages, or one that means different things in different dialects; the message
            names it.
        GrammarTooLarge: a repetition count of more than nine digits.
    """
    return _remembered(pattern, dialect) if len(pattern) <= _SHORT else _Parser(pattern, dialect).parse()


@lru_cache(maxsize=_REMEMBERED)
def _remembered(pattern: str, dialect: Dialect) -> Regex:
    return _Parser(pattern, dialect).parse()


@dataclass(slots=True)
class _Group:
    """An open group: the branches that are finished, and the parts of the one that is not. `assertion`: `=` or `!`, behind a `<` where it
    looks back, in look-around."""

    assertion: str = ""
    branches: list[Concatenation] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def finish_branch(self) -> Concatenation:
        branch = Concatenation(tuple(self.parts))
        self.branches.append(branch)
        self.parts = []
        return branch


class _Parser:
    """One pass from left to right; `_groups` are the open ones, the innermost last, and before them the regex itself."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self._text = pattern
        self._at = 0
        self._dialect = dialect
        self._characters = CharacterReader(pattern, dialect)
        self._nodes: dict[str, Characters] = {}
        self._groups = [_Group()]
        self._branches: list[Branch] = []
        self._start = self._end = False
        self._asserts = False
        self._assertion_depth = 0
        self._quantifiable = False

    def parse(self) -> Regex:
        if "\0" in self._text:
            raise InvalidGrammar("the regex holds a NUL character")
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if len(self._groups) > 1:
            raise InvalidGrammar("the regex has an unclosed parenthesis")
        self._finish_branch()
        return Regex(tuple(self._branches), self._asserts)

    def _step(self, char: str) -> None:
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
        elif self._text[self._at : self._at + 2] in (r"\b", r"\B"):
            self._add_assertion(_word_boundary(self._text[self._at + 1] == "B"))
            self._at += 2
        else:
            self._add(self._one_of(char))

    def _add(self, node: Node) -> None:
        self._groups[-1].parts.append(node)
        self._quantifiable = True

    def _add_assertion(self, node: Node) -> None:
        self._add(node)
        self._quantifiable = False
        self._asserts = True

    def _one_of(self, char: str) -> Characters:
        """The class, escape or character at the cursor, which moves past it. Equal texts share a node."""
        begin = self._at
        if char == "[":
            chosen, self._at = self._characters.character_class(begin)
        elif char == "\\":
            chosen, self._at = self._characters.escape(begin)
        else:
            chosen, self._at = self._dialect.dot if char == "." else points(char), begin + 1
        shown = chosen.minus_surrogates()
        if not shown.ranges or shown.ranges == ((0, 0),):
            raise InvalidGrammar("the regex has a character class that matches nothing, or only NUL")
        return self._nodes.setdefault(self._text[begin : self._at], Characters(shown))

    def _quantify(self, match: re.Match[str]) -> None:
        if not self._quantifiable:
            raise InvalidGrammar(f"the regex has nothing to repeat at position {self._at}")
        least, most = _counts(match)
        self._at = match.end()
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
        elif self._text[self._at : self._at + 1] == "+":
            raise UnsupportedGrammar("regex: possessive quantifiers are not supported")
        parts = self._groups[-1].parts
        parts[-1] = Repetition(parts[-1], least, most, match.group())
        self._quantifiable = False

    def _open(self) -> None:
        match = _GROUP.match(self._text, self._at)
        if not match:
            raise UnsupportedGrammar(f"regex: this kind of group is not supported: {self._text[self._at : self._at + 4]!r}")
        self._at = match.end()
        self._groups.append(_Group(match["assertion"] or ""))
        self._assertion_depth += bool(match["assertion"])
        if self._assertion_depth > MAX_ASSERTION_DEPTH:
            raise UnsupportedGrammar(f"regex: look-around more than {MAX_ASSERTION_DEPTH} deep inside itself is not supported")
        self._quantifiable = False

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise InvalidGrammar("the regex has an unopened parenthesis")
        self._at += 1
        group = self._groups.pop()
        group.finish_branch()
        inner = Alternation(tuple(group.branches))
        if group.assertion:
            self._assertion_depth -= 1
            self._add_assertion(Assertion(inner, "<" not in group.assertion, "!" in group.assertion))
        else:
            self._add(inner)

    def _bar(self) -> None:
        self._at += 1
        if len(self._groups) > 1:
            self._groups[-1].finish_branch()
            self._quantifiable = False
        else:
            self._finish_branch()

    def _finish_branch(self) -> None:
        self._branches.append(Branch(self._groups[0].finish_branch(), self._start, self._end))
        self._start = self._end = self._quantifiable = False

    def _anchor(self, char: str) -> None:
        self._at += 1
        self._quantifiable = False
        outermost = len(self._groups) == 1
        if char == "^" and outermost and not self._groups[0].parts:
            self._start = True
        elif char == "$" and outermost and self._text[self._at : self._at + 1] in ("", "|"):
            self._end = True
        else:
            self._add_assertion(START if char == "^" else self._dialect.end)


def _word_boundary(negative: bool) -> Alternation:
    """`\\b`: between a word character and none, or the edge of the text; `\\B` where `negative`: anywhere else."""
    word = Alternation((Concatenation((Characters(WORD),)),))

    def beside(before: bool, after: bool) -> Concatenation:
        return Concatenation((Assertion(word, False, not before), Assertion(word, True, not after)))

    return Alternation((beside(True, negative), beside(False, not negative)))


def _counts(match: re.Match[str]) -> tuple[int, int | None]:
    low, comma, high = match.groups()
    if low is None:
        return _COUNTS[match.group()]
    if len(low) > _MAX_DIGITS or len(high or "") > _MAX_DIGITS:
        raise GrammarTooLarge("the regex has a repetition count of more than nine digits")
    if high and int(high) < int(low):
        raise InvalidGrammar("the regex has a repetition whose bounds are swapped")
    return int(low), int(high) if high else None if comma else int(low)
