"""Patterns of a normal-form schema, rendered for a backend."""

from __future__ import annotations

import re
from functools import lru_cache

from grammar_service.regexes.classes import CodePoints
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.other_strings import pattern_of_others
from grammar_service.regexes.plain import REMEMBERED, plain_pattern, plain_patterns
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.rendering import character_class
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, mapped

PLAIN_CHARACTER = r'[^"\\\x00-\x1f]'
"""A character that a JSON string holds as it is."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def with_patterns(schema: Json) -> Json:
    """A copy whose `pattern`, `format` and `patternProperties` are patterns without look-around, several ones in an `allOf`; recursion is
    bounded by `parse_json`'s nesting. For a backend that intersects them by itself."""
    if not isinstance(schema, dict):
        return schema
    copy = mapped(schema, with_patterns)
    if plain := plain_text_patterns(copy):
        copy.pop("format", None)
        copy["pattern"] = _in_json(plain[0])
        branches = copy.get("allOf", [])
        more: list[Json] = [{"pattern": _in_json(pattern)} for pattern in plain[1:]]
        if more and isinstance(branches, list):
            copy["allOf"] = [*branches, *more]
    if isinstance(members := copy.get("patternProperties"), dict):
        copy["patternProperties"] = {_in_json(plain_pattern(name)): member for name, member in members.items()}
    return copy


@lru_cache(maxsize=REMEMBERED)
def _in_json(pattern: str) -> str:
    """The pattern as llguidance 1.7.6 may read it: of a class that has all control characters, or all but the line feed, it takes the
    escapes of quotes and backslashes for members, too. So NUL is left out of every class that has not got both."""
    return parse_regex(pattern, Dialect.ECMA).anchored(_class_in_json)


def _class_in_json(points: CodePoints) -> str:
    has_both = ord('"') in points and ord("\\") in points
    return character_class(points if has_both else points.without_nul())


def plain_text_patterns(schema: Schema, effort: Effort | None = None) -> list[str]:
    """What `pattern` and `format` of a schema ask of a string, as `plain_patterns`. Raises as that."""
    known = FORMATS.get(str(schema.get("format")))
    asked = [str(schema["pattern"])] if "pattern" in schema else []
    asked += [known.pattern] if known else []
    return list(dict.fromkeys(plain for pattern in asked for plain in plain_patterns(pattern, effort)))


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
