"""Thompson's construction for the regexes that `regex` writes (its normal form, no other syntax)."""

from __future__ import annotations

import re

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regex_classes import CodePoints, Range, points

MAX_STATES = 4000
MAX_DEPTH = 100
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})|\\(.)", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


class Nfa:
    """States are numbers; `empty[s]` are steps without a character, `steps[s]` those on code points. Raises UnsupportedGrammar when it
    takes more than MAX_STATES."""

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.steps: list[list[tuple[CodePoints, int]]] = []

    def state(self) -> int:
        if len(self.empty) >= MAX_STATES:
            raise UnsupportedGrammar("the pattern is too large to be combined with others")
        self.empty.append([])
        self.steps.append([])
        return len(self.empty) - 1

    def link(self, source: int, target: int) -> None:
        self.empty[source].append(target)


def add_regex(nfa: Nfa, body: str, start: int) -> int:
    """Add the states of a regex body behind `start`; returns the state in which it has matched."""
    builder = _Builder(nfa, body)
    end = builder.alternatives(start, 0)
    if not builder.finished:
        raise UnsupportedGrammar("the pattern cannot be combined with others")
    return end


class _Builder:
    """Recursive descent over the text; depth is bounded by MAX_DEPTH."""

    def __init__(self, nfa: Nfa, text: str) -> None:
        self._nfa = nfa
        self._text = text
        self._at = 0

    @property
    def finished(self) -> bool:
        return self._at == len(self._text)

    def alternatives(self, start: int, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise UnsupportedGrammar("the pattern is nested too deep to be combined with others")
        end = self._nfa.state()
        self._nfa.link(self._sequence(self._branch(start), depth), end)
        while self._text.startswith("|", self._at):
            self._at += 1
            self._nfa.link(self._sequence(self._branch(start), depth), end)
        return end

    def _branch(self, start: int) -> int:
        first = self._nfa.state()
        self._nfa.link(start, first)
        return first

    def _sequence(self, start: int, depth: int) -> int:
        at = start
        while not self.finished and self._text[self._at] not in "|)":
            begin = self._at
            end = self._atom(at, depth)
            at = self._repeated(at, end, begin, depth)
        return at

    def _atom(self, start: int, depth: int) -> int:
        if self._text.startswith("(?:", self._at):
            self._at += 3
            end = self.alternatives(start, depth + 1)
            self._at += 1
            return end
        chosen = self._class() if self._text[self._at] == "[" else self._character()
        end = self._nfa.state()
        self._nfa.steps[start].append((chosen, end))
        return end

    def _repeated(self, start: int, end: int, begin: int, depth: int) -> int:
        """Apply the quantifier at the cursor, if any, to the atom that begins at `begin` and lies between the two states."""
        mark = self._text[self._at : self._at + 1]
        if mark and mark in "*+?":
            self._at += 1
            low, high = (1 if mark == "+" else 0), (1 if mark == "?" else None)
        elif match := _COUNT.match(self._text, self._at):
            self._at = match.end()
            low = int(match[1])
            high = low if not match[2] else int(match[3]) if match[3] else None
        else:
            return end
        after = self._at
        # The first copy is there already; a copy in front of it would be one too many where `low` is 0.
        ends = [start, end]
        for _ in range(1, max(low, high or 0)):
            self._at = begin
            ends.append(self._atom(self._branch(ends[-1]), depth))
        self._at = after
        out = self._nfa.state()
        for state in ends[low : (high if high is not None else max(low, 1)) + 1]:
            self._nfa.link(state, out)
        if high is None:
            self._loop(ends, out, begin, depth)
            self._at = after
        return out

    def _loop(self, ends: list[int], out: int, begin: int, depth: int) -> None:
        """Any number of further copies behind `out`."""
        first = self._branch(out)
        self._at = begin
        self._nfa.link(self._atom(first, depth), out)

    def _class(self) -> CodePoints:
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        ranges: list[Range] = []
        while self._text[self._at] != "]":
            low = high = self._point()
            if self._text[self._at] == "-":
                self._at += 1
                high = self._point()
            ranges.append((low, high))
        self._at += 1
        chosen = CodePoints.of(ranges)
        return (chosen.complement() if negated else chosen).with_surrogates()

    def _character(self) -> CodePoints:
        return points(chr(self._point())).with_surrogates()

    def _point(self) -> int:
        if match := _ESCAPED.match(self._text, self._at):
            self._at = match.end()
            return int(match[1], 16) if match[1] else ord(_CONTROL.get(match[2], match[2]))
        self._at += 1
        return ord(self._text[self._at - 1])
