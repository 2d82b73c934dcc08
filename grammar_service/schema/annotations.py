"""Unknown keywords and formats are annotations (JSON Schema 2020-12, Core, 4.3.1 and 6.5; Validation, 7.2.3): they change no grammar, and
the answer says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import IDENTIFIERS, KNOWN, Schema, is_annotation, mapped
from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, meant

UNKNOWN_KEYWORD = "unknown_keyword"
UNKNOWN_FORMAT = "unknown_format"
SHOWN = 60
"""Characters of an unknown word that a message repeats."""
ELSEWHERE = frozenset({"dependencies", "additionalItems", "divisibleBy", "extends", "disallow", "nullable"})
"""Assertions of other dialects: not annotations, whatever 2020-12 says of them, since they were meant."""
_ASSERTING = KNOWN - IDENTIFIERS


def is_unknown(keyword: str) -> bool:
    return keyword not in KNOWN and keyword not in ELSEWHERE and not is_annotation(keyword)


def is_unknown_in(schema: Schema, keyword: str) -> bool:
    """Whether a keyword of a schema is unknown, or a `format` that is."""
    return str(schema[keyword]) not in FORMATS if keyword == "format" else is_unknown(keyword)


def warnings_of(schemas: Mapping[str, Json], formats: bool = True) -> Iterator[ConstraintWarning]:
    """A warning for each unknown keyword of a document's schemas, and, where `formats` are asked for, each unknown format, by pointer."""
    for pointer, schema in schemas.items():
        for keyword in schema if isinstance(schema, dict) else ():
            if keyword == "format" and isinstance(schema, dict):
                if formats and is_unknown_in(schema, keyword):
                    shown = str(schema[keyword])[:SHOWN]
                    message = f"`{shown}` is not a format of JSON Schema 2020-12 and asserts nothing."
                    yield ConstraintWarning(UNKNOWN_FORMAT, join(pointer, keyword), message, meant(shown, FORMATS))
            elif is_unknown(keyword):
                shown = keyword[:SHOWN]
                message = f"`{shown}` is not a keyword of JSON Schema 2020-12 and asserts nothing."
                yield ConstraintWarning(UNKNOWN_KEYWORD, join(pointer, shown), message, meant(shown, _ASSERTING))


def without_unknown(schema: Json, formats: bool = True) -> Json:
    """A copy without unknown keywords and formats, or without any `formats`; recursion is bounded by the nesting that `parse_json`
    admits."""
    if not isinstance(schema, dict):
        return schema
    kept = {keyword: value for keyword, value in schema.items() if not is_unknown_in(schema, keyword) and (formats or keyword != "format")}
    return mapped(kept, lambda inner: without_unknown(inner, formats))


def refuse_other_dialects(schemas: Mapping[str, Json]) -> None:
    """Raises UnsupportedGrammar: an assertion of another dialect, or a name that no reference resolved."""
    for pointer, schema in schemas.items():
        for keyword in schema if isinstance(schema, dict) else ():
            if keyword in ELSEWHERE:
                raise UnsupportedGrammar(f"`{keyword}` is not a keyword of JSON Schema 2020-12", join(pointer, keyword))
            if keyword in IDENTIFIERS and (keyword != "$id" or pointer):
                raise UnsupportedGrammar(f"`{keyword}` is not supported: refer by JSON pointer", join(pointer, keyword))
