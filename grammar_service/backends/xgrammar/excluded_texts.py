"""What a JSON text must not have that stands in a text of another kind, as one argument of a tool (xgrammar 0.2.8, as it prints grammars).

Strings must not have what would end that text. It can still be said: its first character may be written by its code.
"""

from __future__ import annotations

import re

from grammar_service.regexes.classes import LAST, CodePoints
from grammar_service.regexes.string_set import StringSet
from grammar_service.tags.raw_strings import character, character_class, classes, strings_without

_STRING_RULE = re.compile(r"^basic_string_sub ::= .*$", re.MULTILINE)
_AHEAD = re.compile(r"\[\^((?:[^\]\\]|\\.)*)\] basic_string_sub")
_BEHIND = r"(=([ \n\r\t]* [,}\]:]))"
"""What follows a string, as the library says it of its own: it need not look at what that is for each of them."""
_DIGIT_RULE = re.compile(r"^(\w+) ::= \(\(\[0-9\]\)\)$", re.MULTILINE)
_NUMBERS = re.compile(
    r"(?P<exponent>\[eE\] \w+ \w+)\{1, -1\}|(?P<digits>\[1-9\] \[0-9\])\*|(?P<rule>\w+)\{(?P<least>[01]), -1\}"
    r'|"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]'
)
"""Texts and classes are found so that nothing is taken for a number that stands in one, or behind a quote in one."""
_MOST_DIGITS = 200
_BOUNDED_CLASS = r"[^\"\\\\\\x00-\\x1f]"
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLAIN = CodePoints.of([(0x20, LAST)]).minus_surrogates()


def exclude_from_strings(ebnf: str, excludes: tuple[str, ...]) -> str:
    """A schema's rules, where none of these texts stands in a string as it is written. Each of their characters is a state of strings,
    which takes about 25 ms to compile for each place of a string: a text had better be a short beginning of what is meant."""
    strings, first = strings_without(excludes), "".join(dict.fromkeys(text[0] for text in excludes))
    in_class = "".join(map(character, map(ord, first)))
    bounded = _BOUNDED_CLASS.replace("[^", f"[^{in_class}")
    ebnf = _LITERAL.sub(lambda found: _spelled(found, strings, first), ebnf.replace(_BOUNDED_CLASS, bounded))
    # What stands ahead of the rest of an additional name is told apart from declared names, and not followed here.
    ebnf = _AHEAD.sub(lambda found: f"[^{in_class}{found[1]}] basic_string_sub", ebnf)
    return _STRING_RULE.sub(lambda _: _string_rules(strings), ebnf)


def with_bounded_numbers(ebnf: str) -> str:
    """A schema's rules, where numbers are not beyond the range of doubles: readers of a text that stands alone take those for strings, or
    for infinity, or fail at the number of their digits."""
    of_digits = frozenset(_DIGIT_RULE.findall(ebnf))
    return _NUMBERS.sub(lambda found: _bounded(found, of_digits), ebnf)


def _bounded(found: re.Match[str], of_digits: frozenset[str]) -> str:
    exponent, digits, rule = found["exponent"], found["digits"], found["rule"]
    if exponent:
        return f"{exponent}{{1, 2}}"
    if digits:
        return f"{digits}{{0, {_MOST_DIGITS}}}"
    return f"{rule}{{{found['least']}, {_MOST_DIGITS}}}" if rule in of_digits else found[0]


def _moves(strings: StringSet, state: int) -> list[tuple[CodePoints, int]]:
    return [(points, target) for target, points in classes(strings.moves[state]).items() if target in strings.live]


def _string_rules(strings: StringSet) -> str:
    """Behind a backslash nothing has begun."""
    rules = []
    for state in sorted(strings.live):
        choices = ['"\\""', f'"\\\\" basic_escape {_name(0)}']
        for points, target in _moves(strings, state):
            if (plain := _without_escapes(points)).ranges:
                choices.append(f"{character_class(plain)} {_name(target)}")
        rules.append(f"{_name(state)} ::= ({' | '.join(choices)}) {_BEHIND}")
    return "\n".join(rules)


def _name(state: int) -> str:
    return f"basic_string_text{state}" if state else "basic_string_sub"


def _without_escapes(points: CodePoints) -> CodePoints:
    kept = [(max(low, 0x20), high) for low, high in points.ranges if high >= 0x20]
    for char in '"\\':
        kept = [
            part for low, high in kept for part in ((low, min(high, ord(char) - 1)), (max(low, ord(char) + 1), high)) if part[0] <= part[1]
        ]
    return CodePoints.of(kept)


def _spelled(literal: re.Match[str], strings: StringSet, first: str) -> str:
    """A name or a value of the schema, whose text has what is to be left out: written by codes."""
    text = literal[1]
    if not text.startswith('\\"') or text[2:-2] in strings:
        return literal[0]
    for char in first:
        text = text.replace(char, f"\\\\u{ord(char):04x}")
    return f'"{text}"'
