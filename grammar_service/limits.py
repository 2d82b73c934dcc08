"""What a constraint may cost before anybody compiles it: linear-time checks that are safe against hostile text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grammar_service.errors import GrammarTooLarge, InvalidGrammar
from grammar_service.schema.json_text import Json, json_nesting, nests_deeper, shared_json
from grammar_service.spec import GrammarKind, GrammarSpec, indent_of

MAX_COUNT = 100_000
"""The largest count that either library is given, of repetitions, items or characters. llguidance expands what is counted when a grammar is
loaded, outside of any sandbox: a billion of anything takes gigabytes. xgrammar reads a `max` beyond 32 bits of a structural tag as none."""

_JSON_TEXT = frozenset({GrammarKind.JSON_SCHEMA, GrammarKind.CHOICE, GrammarKind.STRUCTURAL_TAG})

_QUOTED = r'"(?:[^"\\\n]|\\.)*+"?'
_CLASS = r"\[\^?\]?(?:[^\]\\\n]|\\.)*+\]?"
_GROUPS = {
    GrammarKind.REGEX: re.compile(rf"\\.|{_CLASS}|[()]", re.DOTALL),
    GrammarKind.EBNF: re.compile(rf"{_QUOTED}|#[^\n]*+|{_CLASS}|[()]", re.DOTALL),
    GrammarKind.LARK: re.compile(rf"{_QUOTED}|//[^\n]*+|#[^\n]*+|/(?:[^/\\\n]|\\.)*+/?|[()]", re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one constraint: bytes of its text (UTF-8), levels of nesting (objects and arrays, or parentheses), choices."""

    max_constraint_bytes: int = 512 * 1024
    max_nesting: int = 64
    max_choices: int = 10_000


def check_limits(spec: GrammarSpec, limits: Limits) -> None:
    """Refuse what is too large, or is no text of its kind at all; costs time linear in the text.

    Raises:
        GrammarTooLarge: over a limit; the message names it.
        InvalidGrammar: a NUL, text that is not Unicode, an empty constraint, not JSON where JSON is due, unknown whitespace.
    """
    check_size(spec, limits)
    try:
        indent_of(spec.whitespace)
    except ValueError as error:
        raise InvalidGrammar(str(error)) from None
    if "\0" in spec.text:
        raise InvalidGrammar("the constraint holds a NUL character")
    if spec.kind is not GrammarKind.JSON_OBJECT and not spec.text.strip():
        raise InvalidGrammar("the constraint is empty")
    _check_nesting(spec, limits)
    if spec.kind in _JSON_TEXT:
        value = shared_json(spec.text)
        if spec.kind is GrammarKind.CHOICE:
            _check_choices(value, limits)


def check_size(spec: GrammarSpec, limits: Limits) -> None:
    """The one check that costs nothing. Raises GrammarTooLarge; InvalidGrammar: text that is not Unicode."""
    try:
        size = len(spec.text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidGrammar("the constraint holds a lone surrogate, which is not Unicode text") from None
    if size > limits.max_constraint_bytes:
        raise GrammarTooLarge(f"the constraint has {size} bytes, the limit is {limits.max_constraint_bytes}")


def _check_nesting(spec: GrammarSpec, limits: Limits) -> None:
    if spec.kind in _JSON_TEXT:
        if not nests_deeper(spec.text, limits.max_nesting):
            return
        depth = json_nesting(spec.text)
    elif spec.kind in _GROUPS:
        depth = group_nesting(spec.kind, spec.text)
    else:
        return
    if depth > limits.max_nesting:
        raise GrammarTooLarge(f"the constraint is nested {depth} levels deep, the limit is {limits.max_nesting}")


def group_nesting(kind: GrammarKind, text: str) -> int:
    """The deepest level of parentheses in a regex, an EBNF or a Lark grammar; linear time, no recursion, any text."""
    deepest = depth = 0
    for match in _GROUPS[kind].finditer(text):
        if match.group() == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif match.group() == ")":
            depth = max(depth - 1, 0)
    return deepest


def _check_choices(value: Json, limits: Limits) -> None:
    if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
        raise InvalidGrammar("choices must be a JSON array of strings")
    if not value:
        raise InvalidGrammar("the list of choices is empty")
    if len(value) > limits.max_choices:
        raise GrammarTooLarge(f"there are {len(value)} choices, the limit is {limits.max_choices}")
    for index, choice in enumerate(value):
        if not choice or "\0" in str(choice):
            raise InvalidGrammar("a choice is empty or holds a NUL character", f"/{index}")
