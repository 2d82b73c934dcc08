"""Patterns of a normal-form schema, written for a backend."""

from __future__ import annotations

from collections.abc import Callable

from grammar_service.json_text import Json
from grammar_service.regex import Dialect, Regex, parse_regex
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, MAP_OF_SUBSCHEMAS, ONE_SUBSCHEMA

Writer = Callable[[Regex], str]


def with_patterns(schema: Json, write: Writer) -> Json:
    """A copy whose `pattern` and `patternProperties` are written by `write`; recursion is bounded by `parse_json`'s nesting."""
    if not isinstance(schema, dict):
        return schema
    return {keyword: _written(keyword, value, write) for keyword, value in schema.items()}


def _written(keyword: str, value: Json, write: Writer) -> Json:
    if keyword == "pattern" and isinstance(value, str):
        return write(parse_regex(value, Dialect.ECMA))
    if keyword in ONE_SUBSCHEMA:
        return with_patterns(value, write)
    if keyword in LIST_OF_SUBSCHEMAS and isinstance(value, list):
        return [with_patterns(item, write) for item in value]
    if keyword in MAP_OF_SUBSCHEMAS and isinstance(value, dict):
        rename = keyword == "patternProperties"
        return {write(parse_regex(name, Dialect.ECMA)) if rename else name: with_patterns(member, write) for name, member in value.items()}
    return value
