"""How much text a grammar of xgrammar may force at one go (xgrammar 0.2.8, format v16).

The library looks for forced text to its very end, and a constraint of thirty characters can force gigabytes: `((a{99}){99}){99}…`, or
rules that double one another. Nothing stops such a search, so grammars where it might be long are known before anybody searches.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import xgrammar

from grammar_service.backends.xgrammar.classes import characters

LONG = 64 * 1024
"""Bytes; to find as many takes 10 ms."""
_MAX_RECURSION_BYTES = 256 * 1024
"""Forced bytes at the end of a recursion, in 40 ms. Beyond this bound matchers do not search."""
_VISITS = 50
"""How often an expression may be looked at, on average, before what is known has to do."""
_MOST_ESCAPED = 6
"""Bytes of a character in a JSON string, written by its code."""


class Kind(IntEnum):
    """Of an expression, as the library numbers them. A search for text does not see single tokens."""

    BYTES = 0
    CLASS = 1
    STARRED_CLASS = 2
    EMPTY = 3
    RULE = 4
    SEQUENCE = 5
    CHOICES = 6
    TAG_DISPATCH = 7
    REPEAT = 8
    TOKEN = 9
    EXCLUDED_TOKENS = 10
    REGEX = 12


_KINDS = frozenset(map(int, Kind))
_TOKENS = frozenset({Kind.TOKEN, Kind.EXCLUDED_TOKENS})


class _Run(NamedTuple):
    """So many bytes at most are forced from the start of an expression on; `passes`: maybe to its end, and beyond. Infinite where nothing
    is known, or no text has it."""

    passes: bool
    bytes: float


_NOTHING, _CHARACTER, _UNKNOWN = _Run(True, 0), _Run(True, 4), _Run(True, math.inf)
_SEVERAL = _Run(False, 3)
"""Of different characters the first bytes may be the same."""


@dataclass(slots=True)
class ForcedSearch:
    """Whether the matchers of a grammar, who share it, look for forced text: the library looks to its very end. `tail` is that of
    `recursion_tail`. Where little is forced, only the end of a deep recursion makes a long text; a grammar that has made one is asked no
    more."""

    tail: int | None

    def is_allowed(self, text_bytes: int) -> bool:
        """After a text of so many bytes, each of which may have opened a level."""
        return self.tail is not None and self.tail * text_bytes <= _MAX_RECURSION_BYTES

    def found(self, length: int) -> None:
        if length > LONG:
            self.tail = None


class SerializedGrammar(msgspec.Struct):
    """A grammar as the library serializes it: `indptr[i]` is where expression i has its kind, its length and its content."""

    rules: list[tuple[Any, ...]]
    grammar_expr_data: list[int]
    grammar_expr_indptr: list[int]
    root_rule_id: int

    @classmethod
    def of(cls, grammar: xgrammar.Grammar) -> SerializedGrammar:
        return _SERIALIZED.decode(grammar.serialize_json())

    @property
    def expressions(self) -> list[tuple[int, list[int]]]:
        """The kind and the content of each."""
        return [_expression(self.grammar_expr_data, start) for start in self.grammar_expr_indptr]

    @property
    def bodies(self) -> list[int]:
        """The expression that each rule is."""
        return [rule[1] for rule in self.rules]


_SERIALIZED = msgspec.json.Decoder(SerializedGrammar)


def recursion_tail(grammar: xgrammar.Grammar, checks_tokens: bool = False) -> int | None:
    """Bytes that ends of recursions force at most for each byte of the text before, where nothing else forces more than LONG, and the text
    that is found is forced indeed. None elsewhere, and where it is hard to tell. Takes a grammar that has not been compiled: a compiled
    one repeats itself. `checks_tokens`: what is found is cut where a token may come, which the search does not see."""
    read = SerializedGrammar.of(grammar)
    if not checks_tokens and any(kind in _TOKENS for kind, _ in read.expressions):
        return None
    runs = _Runs(read)
    return int(runs.tails) if runs.most() <= LONG else None


def most_forced(grammar: xgrammar.Grammar) -> float:
    """A bound on the bytes that any state forces, recursions but for one level; infinite where there is none."""
    return _runs(grammar).most()


class _Runs:
    """Any path through an expression bounds what is forced in it, since the others can only add choices. So the shortest alternative
    counts of those that end in a choice, or else of all. Where some may begin with a token, the search does not see those: the longest
    counts."""

    def __init__(self, grammar: SerializedGrammar) -> None:
        self._expressions = grammar.expressions
        self._bodies = grammar.bodies
        self._root = grammar.root_rule_id
        self._names = [set(self._named(body)) for body in self._bodies]
        self._with_tokens = self._find_tokens()
        self._rules = [_UNKNOWN] * len(self._bodies)
        self.tails = math.inf
        self._regexes = {
            index: _runs(xgrammar.Grammar.from_regex(bytes(byte & 0xFF for byte in content[1:]).decode("utf-8")))
            for index, (kind, content) in enumerate(self._expressions)
            if kind == Kind.REGEX
        }

    def most(self) -> float:
        if any(kind not in _KINDS for kind, _ in self._expressions):
            return math.inf
        inside = sum(_MOST_ESCAPED * regex.most() for regex in self._regexes.values())
        self._settle()
        self.tails = self._all_tails()
        return inside + self._total()

    def root(self) -> _Run:
        """What is forced from the start on; after `most`."""
        return self._rules[self._root]

    def _total(self) -> float:
        """Of all sequences and of the longest alternatives, those of the rules that they name included: a forced text goes through the
        rest of one after another, and outside a recursion through each but once."""
        return sum(self._whole(kind, content) for kind, content in self._expressions)

    def _whole(self, kind: int, content: list[int]) -> float:
        match kind:
            case Kind.SEQUENCE:
                return sum(self._run(part).bytes for part in content)
            case Kind.CHOICES:
                return max((self._run(part).bytes for part in content), default=0)
            case _:
                return 0

    def _all_tails(self) -> float:
        """The most that is forced behind a level of a recursion, up to the end of the rule that it stands in: of all recursive rules, since
        one byte may open a level of each."""
        recursive = in_circles(self._names)
        return sum(max(self._tails_of_rule(rule, recursive), default=0) for rule in recursive)

    def _tails_of_rule(self, rule: int, recursive: set[int]) -> Iterator[float]:
        for sequence in self._sequences(self._bodies[rule]):
            yield from self._tails(sequence, recursive)

    def _tails(self, sequence: list[int], recursive: set[int]) -> Iterator[float]:
        for at, part in enumerate(sequence):
            if recursive.isdisjoint(self._named(part)):
                continue
            again = _NOTHING if self._expressions[part][0] == Kind.RULE else self._run(part)
            tail = _in_turn([again, *map(self._run, sequence[at + 1 :])])
            if tail.passes:
                yield tail.bytes

    def _find_tokens(self) -> set[int]:
        """The rules that have a token, or name one that has."""
        users = inverted(self._names)
        waiting = [rule for rule, body in enumerate(self._bodies) if self._has_token(body, ())]
        found = set(waiting)
        while waiting:
            new = [user for user in users[waiting.pop()] if user not in found]
            found.update(new)
            waiting += new
        return found

    def _has_token(self, index: int, rules: Container[int] | None = None) -> bool:
        """Whether an expression has a token, or names one of the rules, None: one with a token."""
        kind, content = self._expressions[index]
        if kind in (Kind.RULE, Kind.REPEAT):
            return content[0] in (self._with_tokens if rules is None else rules)
        return kind in _TOKENS or (kind in (Kind.SEQUENCE, Kind.CHOICES) and any(self._has_token(part, rules) for part in content))

    def _sequences(self, index: int) -> Iterator[list[int]]:
        kind, content = self._expressions[index]
        if kind == Kind.SEQUENCE:
            yield content
        if kind in (Kind.SEQUENCE, Kind.CHOICES):
            for part in content:
                yield from self._sequences(part)

    def _settle(self) -> None:
        """Every value bounds, from the first on; go on until none changes."""
        users = inverted(self._names)
        sizes = [self._size(body) for body in self._bodies]
        waiting, left = dict.fromkeys(reversed(range(len(self._bodies)))), _VISITS * sum(sizes)
        while waiting and left > 0:
            rule = next(iter(waiting))
            del waiting[rule]
            left -= sizes[rule]
            run = self._run(self._bodies[rule])
            if run != self._rules[rule]:
                self._rules[rule] = run
                waiting.update(dict.fromkeys(users[rule]))

    def _size(self, index: int) -> int:
        kind, content = self._expressions[index]
        return 1 + sum(map(self._size, content)) if kind in (Kind.SEQUENCE, Kind.CHOICES) else 1

    def _named(self, index: int) -> Iterator[int]:
        kind, content = self._expressions[index]
        if kind in (Kind.RULE, Kind.REPEAT):
            yield content[0]
        elif kind in (Kind.SEQUENCE, Kind.CHOICES):
            for part in content:
                yield from self._named(part)

    def _run(self, index: int) -> _Run:
        kind, content = self._expressions[index]
        match kind:
            case Kind.BYTES:
                return _Run(True, len(content))
            case Kind.CLASS | Kind.STARRED_CLASS:
                return _of_class(content, kind == Kind.STARRED_CLASS)
            case Kind.RULE:
                return self._rules[content[0]]
            case Kind.REPEAT:
                return _repeated(self._rules[content[0]], least=content[1], most=content[2])
            case Kind.REGEX:
                passes, length = self._regexes[index].root()
                return _Run(passes, _MOST_ESCAPED * length)
            case Kind.SEQUENCE | Kind.CHOICES:
                return self._composed(kind, [self._run(part) for part in content], self._has_token(index))
            case Kind.TOKEN | Kind.EXCLUDED_TOKENS:
                return _Run(False, 0)
            case _:
                return _NOTHING

    @staticmethod
    def _composed(kind: int, runs: Sequence[_Run], has_token: bool) -> _Run:
        if kind == Kind.SEQUENCE:
            return _in_turn(_to_end(runs) if has_token else runs)
        return (_longest if has_token else min)(runs, default=_NOTHING)


def _runs(grammar: xgrammar.Grammar) -> _Runs:
    return _Runs(SerializedGrammar.of(grammar))


def _expression(data: list[int], start: int) -> tuple[int, list[int]]:
    kind, length = data[start : start + 2]
    return kind, data[start + 2 : start + 2 + length]


def _in_turn(runs: Sequence[_Run]) -> _Run:
    """What stands behind a choice counts as well: where no text has it, none has what leads to it."""
    if any(math.isinf(run.bytes) for run in runs):
        return _UNKNOWN
    total = 0.0
    for run in runs:
        total += run.bytes
        if not run.passes:
            return _Run(False, total)
    return _Run(True, total)


def _longest(runs: Iterable[_Run], default: _Run) -> _Run:
    found = list(runs)
    return _Run(any(run.passes for run in found), max(run.bytes for run in found)) if found else default


def _to_end(runs: Sequence[_Run]) -> Sequence[_Run]:
    """Up to the first that does not pass."""
    end = next((place for place, run in enumerate(runs) if not run.passes), len(runs))
    return runs[: end + 1]


def _repeated(run: _Run, least: int, most: int) -> _Run:
    """`most` is negative where there is no end."""
    if not most or (not least and run.passes):
        return _NOTHING
    return _Run(True, run.bytes * least) if run.passes else run


def _of_class(content: list[int], starred: bool) -> _Run:
    count = characters(content)
    if count > 1:
        return _SEVERAL
    if starred:
        return _NOTHING
    return _CHARACTER if count else _UNKNOWN


def inverted(names: Sequence[set[int]]) -> list[set[int]]:
    """By rule, the rules that name it; `names` has the rules that each one names."""
    users: list[set[int]] = [set() for _ in names]
    for rule, named in enumerate(names):
        for other in named:
            users[other].add(rule)
    return users


def in_circles(names: Sequence[set[int]]) -> set[int]:
    """The rules that lead back to themselves, and those on a way from one circle to another: what is left when all that names none, or
    is named by none, has been taken away again and again."""
    left = [set(named) for named in names]
    users = inverted(left)
    rules = set(range(len(names)))
    waiting = [rule for rule in rules if not left[rule] or not users[rule]]
    while waiting:
        rule = waiting.pop()
        if rule not in rules:
            continue
        rules.remove(rule)
        for user in users[rule]:
            left[user].discard(rule)
        for named in left[rule]:
            users[named].discard(rule)
        waiting += [user for user in users[rule] if not left[user]]
        waiting += [named for named in left[rule] if not users[named]]
    return rules
