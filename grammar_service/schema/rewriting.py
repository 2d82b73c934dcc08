"""Patterns of a normal-form schema, written for a backend."""

from __future__ import annotations

import re
from collections.abc import Callable

from grammar_service.json_text import Json
from grammar_service.other_strings import pattern_of_others
from grammar_service.regex import Dialect, Regex, parse_regex
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, MAP_OF_SUBSCHEMAS, ONE_SUBSCHEMA

PLAIN_CHARACTER = r'[^"\\\x00-\x1f]'
"""A character that a JSON string holds as it is."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
Writer = Callable[[Regex], str]


def with_patterns(schema: Json, write: Writer) -> Json:
    """A copy whose `pattern` and `patternProperties` are written by `write`; recursion is bounded by `parse_json`'s nesting."""
    if not isinstance(schema, dict):
        return schema
    return {keyword: _written(keyword, value, write) for keyword, value in schema.items()}


def with_plain_names(schema: Json) -> Json:
    """A copy whose additional properties, beside declared ones, are `patternProperties`: for a backend that lets additional names be
    spelt with escapes, so that a declared one could come again, but not those of a pattern.

    Only for schemas that have no `patternProperties` beside additional ones.
    """
    if not isinstance(schema, dict):
        return schema
    copy = {keyword: _inside(keyword, value, with_plain_names) for keyword, value in schema.items()}
    properties, others = copy.get("properties"), copy.get("additionalProperties", True)
    if not properties or not isinstance(properties, dict) or others is False:
        return copy
    # A pattern asks of declared names too; and of their control characters two spellings are left even there.
    excluded = [name for name in properties if others not in (True, {}) or _CONTROL.search(name)]
    return {**copy, "patternProperties": {pattern_of_others(excluded): others}, "additionalProperties": False}


def with_length_patterns(schema: Json) -> Json:
    """A copy whose `minLength` and `maxLength` are patterns: for a backend that lets control characters into bounded strings.

    Only for schemas that have no `pattern` and no `format` beside the bounds.
    """
    if not isinstance(schema, dict):
        return schema
    least, most = schema.get("minLength"), schema.get("maxLength")
    copy = {keyword: _inside(keyword, value, with_length_patterns) for keyword, value in schema.items()}
    if least is None and most is None:
        return copy
    counts = f"{least or 0},{'' if most is None else most}"
    rest = {keyword: value for keyword, value in copy.items() if keyword not in ("minLength", "maxLength")}
    return {**rest, "pattern": f"{PLAIN_CHARACTER}{{{counts}}}"}


def _written(keyword: str, value: Json, write: Writer) -> Json:
    if keyword == "pattern" and isinstance(value, str):
        return write(parse_regex(value, Dialect.ECMA))
    if keyword == "patternProperties" and isinstance(value, dict):
        return {write(parse_regex(name, Dialect.ECMA)): with_patterns(member, write) for name, member in value.items()}
    return _inside(keyword, value, lambda schema: with_patterns(schema, write))


def _inside(keyword: str, value: Json, rewrite: Callable[[Json], Json]) -> Json:
    if keyword in ONE_SUBSCHEMA:
        return rewrite(value)
    if keyword in LIST_OF_SUBSCHEMAS and isinstance(value, list):
        return [rewrite(item) for item in value]
    if keyword in MAP_OF_SUBSCHEMAS and isinstance(value, dict):
        return {name: rewrite(member) for name, member in value.items()}
    return value
