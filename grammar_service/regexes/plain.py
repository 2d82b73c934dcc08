"""Regexes with look-around as regexes without it, which is all that backends read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.string_set import SET_EFFORT, StringSet
from grammar_service.regexes.string_set_regex import anchored_pattern
from grammar_service.regexes.syntax import END, Alternation, Assertion, Branch, Concatenation, Node, Regex, Repetition

REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class _PlainPatterns:
    """`patterns` that a string must match all of, what it took to find them, and why there are none."""

    patterns: tuple[str, ...] = ()
    steps: int = 0
    fault: UnsupportedGrammar | None = None


def plain_patterns(pattern: str, effort: Effort | None = None) -> tuple[str, ...]:
    """JSON Schema `pattern`s without look-around that a string matches all of, exactly where it matches this one; at least one.

    `effort` is charged alike whether the answer is remembered or not. Raises GrammarError as `parse_regex` does; UnsupportedGrammar: its
    automaton is too large, or nothing matches.
    """
    return _charged(_in_parts, pattern, effort)


def plain_pattern(pattern: str, effort: Effort | None = None) -> str:
    """The same as a single pattern."""
    return _charged(_in_one, pattern, effort)[0]


def plain_full_match(text: str, effort: Effort | None = None) -> str:
    """A regex of kind `regex` (`Dialect.PYTHON_ASCII`) for a backend that matches whole texts. Raises as `plain_patterns`."""
    return _charged(_whole, text, effort)[0]


def _charged(find: Callable[[str], _PlainPatterns], text: str, effort: Effort | None) -> tuple[str, ...]:
    if effort is not None:
        # Nothing is begun when there is no effort left.
        effort.spend(1)
    plain = find(text)
    if effort is not None:
        effort.spend(plain.steps)
    if plain.fault is not None:
        raise plain.fault
    return plain.patterns


@lru_cache(maxsize=REMEMBERED)
def _in_parts(pattern: str) -> _PlainPatterns:
    regex = parse_regex(pattern, Dialect.ECMA)
    parts = _conjuncts(regex.branches[0]) if regex.asserts and len(regex.branches) == 1 else [(regex, False)]
    return _plain(parts)


@lru_cache(maxsize=REMEMBERED)
def _in_one(pattern: str) -> _PlainPatterns:
    return _plain([(parse_regex(pattern, Dialect.ECMA), False)])


@lru_cache(maxsize=REMEMBERED)
def _whole(text: str) -> _PlainPatterns:
    regex = parse_regex(text, Dialect.PYTHON_ASCII)
    if not regex.asserts:
        return _PlainPatterns((regex.full_match(),))
    plain = _plain([(regex.whole(), False)])
    return _PlainPatterns(tuple(text.removeprefix("^").removesuffix("$") for text in plain.patterns), plain.steps, plain.fault)


def _plain(parts: list[tuple[Regex, bool]]) -> _PlainPatterns:
    effort = Effort(SET_EFFORT)
    try:
        patterns = [
            regex.anchored() if not (regex.asserts or negative) else _determined(regex, negative, effort) for regex, negative in parts
        ]
    except UnsupportedGrammar as error:
        return _PlainPatterns(steps=effort.spent, fault=error)
    return _PlainPatterns(tuple(dict.fromkeys(text for text in patterns if text)) or ("",), effort.spent)


def _determined(regex: Regex, negative: bool, effort: Effort) -> str:
    strings = StringSet.of_regex(regex, effort)
    return anchored_pattern(strings.complement() if negative else strings)


def _conjuncts(branch: Branch) -> list[tuple[Regex, bool]]:
    """A branch as regexes of which a string must match (must not match, where the flag says so) each: what it looks ahead for at its start,
    looks back for at its end, and the rest. One by one they are small where their common automaton is not."""
    parts = list(branch.body.parts)
    found: list[tuple[Regex, bool]] = []
    while branch.start and parts and isinstance(first := parts[0], Assertion) and first.ahead:
        found.append((_regex(first, start=True), first.negative))
        del parts[0]
    while branch.end and parts and isinstance(last := parts[-1], Assertion) and not last.ahead:
        found.append((_regex(last, start=False), last.negative))
        del parts[-1]
    rest = Branch(Concatenation(tuple(parts)), branch.start, branch.end)
    return [*found, (Regex((rest,), _asserts(rest.body)), False)]


def _regex(assertion: Assertion, start: bool) -> Regex:
    """What look-around at the edge of a text asks of the whole."""
    branches = []
    for body in assertion.inner.branches:
        ends = start and bool(body.parts) and body.parts[-1] == END
        kept = Concatenation(body.parts[:-1]) if ends else body
        branches.append(Branch(kept, start, ends or not start))
    return Regex(tuple(branches), any(_asserts(branch.body) for branch in branches))


def _asserts(node: Node) -> bool:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Assertion):
            return True
        waiting += _inside(found)
    return False


def _inside(node: Node) -> tuple[Node, ...]:
    match node:
        case Concatenation(parts):
            return parts
        case Repetition(inner):
            return (inner,)
        case Alternation(branches):
            return branches
    return ()
