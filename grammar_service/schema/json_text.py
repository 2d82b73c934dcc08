"""Reading JSON that a stranger wrote: bounded depth, no surprises of Python's dialect."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import NoReturn

from grammar_service.errors import GrammarTooLarge, InvalidGrammar

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

REMEMBERED = 2
HARD_NESTING = 128
"""Levels that our own recursive walks are safe with, whatever the operator configures."""

_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def nests_deeper(text: str, most: int) -> bool:
    """Whether objects and arrays go deeper than `most` levels; at once where there are too few brackets for that."""
    return text.count("{") + text.count("[") > most and json_nesting(text) > most


def json_nesting(text: str) -> int:
    """The deepest level of objects and arrays in a JSON text; linear time, no recursion, any text."""
    deepest = depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
    return deepest


def parse_json(text: str, what: str) -> Json:
    """The value of a JSON text, key order kept.

    Raises:
        GrammarTooLarge: nested deeper than HARD_NESTING.
        InvalidGrammar: not JSON (RFC 8259), NaN, a number out of range, a duplicate key, or a lone surrogate; `what` names the text.
    """
    if nests_deeper(text, HARD_NESTING):
        raise GrammarTooLarge(f"{what} is nested deeper than {HARD_NESTING} levels")
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique)
        if "\\u" in text or not text.isascii():
            text_of(value).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidGrammar(f"{what} holds a lone surrogate, which is not Unicode text") from None
    except ValueError as error:
        raise InvalidGrammar(f"{what} is not valid JSON: {error}") from None
    return value


@lru_cache(maxsize=REMEMBERED)
def shared_json(text: str) -> Json:
    """As `parse_json`, for a constraint that is read in several places; the last ones are remembered. Nobody may change the value."""
    return parse_json(text, "the constraint")


def text_of(value: Json) -> str:
    """The canonical compact text of a JSON value: key order kept, no insignificant whitespace."""
    return _CANONICAL.encode(value)


def same_json(left: Json, right: Json) -> bool:
    """JSON Schema's equality: 1 equals 1.0, and True does not equal 1."""
    return equality_text(left) == equality_text(right)


def equality_text(value: Json) -> str:
    """A text that is the same for values that JSON Schema calls equal, and differs for the others."""
    return json.dumps(_plain(value), sort_keys=True, allow_nan=False)


def _plain(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names the same key twice")
    return members
