"""Patterns of a normal-form schema, rendered for a backend."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.other_strings import pattern_of_others
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.syntax import Regex
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import mapped

PLAIN_CHARACTER = r'[^"\\\x00-\x1f]'
"""A character that a JSON string holds as it is."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
Render = Callable[[Regex], str]


def with_patterns(schema: Json, render: Render) -> Json:
    """A copy whose `pattern` and `patternProperties` are rendered by `render`; recursion is bounded by `parse_json`'s nesting."""
    if not isinstance(schema, dict):
        return schema
    copy = mapped(schema, partial(with_patterns, render=render))
    if isinstance(pattern := copy.get("pattern"), str):
        copy["pattern"] = render(parse_regex(pattern, Dialect.ECMA))
    if isinstance(members := copy.get("patternProperties"), dict):
        copy["patternProperties"] = {render(parse_regex(name, Dialect.ECMA)): member for name, member in members.items()}
    return copy


def with_plain_names(schema: Json) -> Json:
    """A copy whose additional properties, beside declared ones, are `patternProperties`: for a backend that lets additional names be
    spelt with escapes, so that a declared one could come again, but not those of a pattern.

    Only for schemas that have no `patternProperties` beside additional ones.
    """
    if not isinstance(schema, dict):
        return schema
    copy = mapped(schema, with_plain_names)
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
    copy = mapped(schema, with_length_patterns)
    if least is None and most is None:
        return copy
    counts = f"{least or 0},{'' if most is None else most}"
    rest = {keyword: value for keyword, value in copy.items() if keyword not in ("minLength", "maxLength")}
    return {**rest, "pattern": f"{PLAIN_CHARACTER}{{{counts}}}"}
