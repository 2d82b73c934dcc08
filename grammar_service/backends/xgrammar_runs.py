"""How much text a grammar of xgrammar may force at one go (xgrammar 0.2.8, format v16).

The library looks for forced text to its very end, and a constraint of thirty characters can force gigabytes: `((a{99}){99}){99}…`, or
rules that double one another. Nothing stops such a search, so grammars where it might be long are known before anybody searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import xgrammar

from grammar_service.backends.forced_search import LONG

_VISITS = 100
"""How often a rule may be looked at, on average, before what is known of it has to do."""
_CHARACTERS = 0x110000 - 0x800


class _Kind(IntEnum):
    """Of an expression, as the library numbers them; others hold no text of their own."""

    BYTES = 0
    CLASS = 1
    STARRED_CLASS = 2
    RULE = 4
    SEQUENCE = 5
    CHOICES = 6
    REPEAT = 8


class _Run(NamedTuple):
    """So many bytes at most are forced from the start of an expression on; `passes`: maybe to its end, and beyond."""

    passes: bool
    bytes: float


_NOTHING, _CHARACTER, _UNKNOWN = _Run(True, 0), _Run(True, 4), _Run(True, math.inf)
_SEVERAL = _Run(False, 3)
"""Of different characters the first bytes may be the same."""


class _Written(msgspec.Struct):
    """A grammar as the library serializes it: `indptr[i]` is where expression i has its kind, its length and its content."""

    rules: list[tuple[Any, ...]]
    grammar_expr_data: list[int]
    grammar_expr_indptr: list[int]


def forces_little(grammar: xgrammar.Grammar) -> bool:
    """Whether no state forces more than LONG bytes, but for one that ends many levels of a recursion. False also where it is hard to
    tell. Takes a grammar that has not been compiled: a compiled one repeats itself."""
    return most_forced(grammar) <= LONG


def most_forced(grammar: xgrammar.Grammar) -> float:
    """A bound on the bytes that any state forces, recursions but for one level; infinite for a text without end."""
    return _Runs(msgspec.json.decode(grammar.serialize_json(), type=_Written)).total()


class _Runs:
    """Any path through an expression bounds what is forced in it, since the others can only add choices. So the shortest alternative
    counts of those that end in a choice, or else of all."""

    def __init__(self, written: _Written) -> None:
        self._expressions = [_expression(written.grammar_expr_data, start) for start in written.grammar_expr_indptr]
        self._bodies: list[int] = [rule[1] for rule in written.rules]
        self._rules = [_UNKNOWN] * len(self._bodies)

    def total(self) -> float:
        """Of all sequences and of the longest alternatives, those of the rules that they name included: a forced text goes through the
        rest of one after another, and outside a recursion through each but once."""
        self._settle()
        return sum(self._whole(kind, content) for kind, content in self._expressions)

    def _whole(self, kind: int, content: list[int]) -> float:
        match kind:
            case _Kind.SEQUENCE:
                return sum(self._run(part).bytes for part in content)
            case _Kind.CHOICES:
                return max((self._run(part).bytes for part in content), default=0)
            case _:
                return 0

    def _settle(self) -> None:
        """Every value bounds, from the first on; go on until none changes."""
        users = self._users()
        waiting = dict.fromkeys(range(len(self._bodies)))
        for _ in range(_VISITS * len(self._bodies)):
            if not waiting:
                return
            rule = next(iter(waiting))
            del waiting[rule]
            run = self._run(self._bodies[rule])
            if run != self._rules[rule]:
                self._rules[rule] = run
                waiting.update(dict.fromkeys(users[rule]))

    def _users(self) -> list[set[int]]:
        """By rule, the rules that name it."""
        users: list[set[int]] = [set() for _ in self._bodies]
        for rule, body in enumerate(self._bodies):
            for named in self._named(body):
                users[named].add(rule)
        return users

    def _named(self, index: int) -> Iterator[int]:
        kind, content = self._expressions[index]
        if kind in (_Kind.RULE, _Kind.REPEAT):
            yield content[0]
        elif kind in (_Kind.SEQUENCE, _Kind.CHOICES):
            for part in content:
                yield from self._named(part)

    def _run(self, index: int) -> _Run:
        kind, content = self._expressions[index]
        match kind:
            case _Kind.BYTES:
                return _Run(True, len(content))
            case _Kind.CLASS:
                return _CHARACTER if _may_be_one(content) else _SEVERAL
            case _Kind.STARRED_CLASS:
                return _NOTHING if _may_be_one(content) else _SEVERAL
            case _Kind.RULE:
                return self._rules[content[0]]
            case _Kind.REPEAT:
                return _repeated(self._rules[content[0]], least=content[1])
            case _Kind.SEQUENCE:
                return _in_turn(map(self._run, content))
            case _Kind.CHOICES:
                return min(map(self._run, content), default=_NOTHING)
            case _:
                return _NOTHING


def _expression(data: list[int], start: int) -> tuple[int, list[int]]:
    kind, length = data[start : start + 2]
    return kind, data[start + 2 : start + 2 + length]


def _in_turn(runs: Iterable[_Run]) -> _Run:
    total = 0.0
    for run in runs:
        total += run.bytes
        if not run.passes:
            return _Run(False, total)
    return _Run(True, total)


def _repeated(run: _Run, least: int) -> _Run:
    if not run.passes:
        return run
    return _Run(True, run.bytes * least) if least else _NOTHING


def _may_be_one(content: Sequence[int]) -> bool:
    """Whether a class of characters, a flag for "all but these" and pairs of first and last, may be of one character only."""
    negative, *ends = content
    firsts, lasts = ends[::2], ends[1::2]
    if negative:
        return _CHARACTERS - sum(last - first + 1 for first, last in zip(firsts, lasts, strict=True)) <= 1
    return not ends or min(firsts) == max(lasts)
