"""Marks that a model's vocabulary has with a suffix of that model: `<tool_call:x>` for `<tool_call>`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.json_text import Json

_NOT_TEXT = frozenset({"json_schema", "pattern", "grammar"})
"""Fields of formats that hold no text in which a mark could stand."""


def with_suffix(value: Json, names: Sequence[str], spellings: Collection[str], pointer: str) -> Json:
    """A format whose texts have the marks of these names, `<NAME>` and `</NAME>`, as they are among the `spellings` of the vocabulary.
    Raises InvalidGrammar at the pointer: the first mark is not there, or several times."""
    suffix = _suffix(names[0], spellings, pointer)
    return _replaced(value, re.compile(rf"(</?(?:{'|'.join(map(re.escape, names))}))>"), rf"\1{suffix}>") if suffix else value


def _suffix(name: str, spellings: Collection[str], pointer: str) -> str:
    mark = re.compile(rf"<{re.escape(name)}((?::[\w.\-]+)?)>")
    found = {match[1] for spelling in spellings if (match := mark.fullmatch(spelling))}
    if len(found) != 1:
        raise InvalidGrammar(f"the model has {'more than one' if found else 'no'} token {f'<{name}>'[:40]!r}", pointer)
    return found.pop()


def _replaced(value: Json, mark: re.Pattern[str], by: str) -> Json:
    if isinstance(value, str):
        return mark.sub(by, value)
    if isinstance(value, list):
        return [_replaced(item, mark, by) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _NOT_TEXT else _replaced(item, mark, by) for key, item in value.items()}
    return value
