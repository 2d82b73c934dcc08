"""Unknown keywords are annotations (JSON Schema 2020-12, Core, 4.3.1 and 6.5): they change no grammar, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import IDENTIFIERS, KNOWN, is_annotation, mapped
from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, meant

UNKNOWN_KEYWORD = "unknown_keyword"
SHOWN = 60
"""Characters of an unknown keyword that a message repeats."""
ELSEWHERE = frozenset({"dependencies", "additionalItems", "divisibleBy", "extends", "disallow", "nullable"})
"""Assertions of other dialects: not annotations, whatever 2020-12 says of them, since they were meant."""
_ASSERTING = KNOWN - IDENTIFIERS


def is_unknown(keyword: str) -> bool:
    return keyword not in KNOWN and keyword not in ELSEWHERE and not is_annotation(keyword)


def warnings_of(schemas: Mapping[str, Json]) -> Iterator[ConstraintWarning]:
    """A warning for each unknown keyword of a document's schemas, by pointer."""
    for pointer, schema in schemas.items():
        for keyword in schema if isinstance(schema, dict) else ():
            if is_unknown(keyword):
                shown = keyword[:SHOWN]
                message = f"`{shown}` is not a keyword of JSON Schema 2020-12 and asserts nothing."
                yield ConstraintWarning(UNKNOWN_KEYWORD, join(pointer, shown), message, meant(shown, _ASSERTING))


def without_unknown(schema: Json) -> Json:
    """A copy without unknown keywords; recursion is bounded by the nesting that `parse_json` admits."""
    if not isinstance(schema, dict):
        return schema
    return mapped({keyword: value for keyword, value in schema.items() if not is_unknown(keyword)}, without_unknown)


def refuse_other_dialects(schemas: Mapping[str, Json]) -> None:
    """Raises UnsupportedGrammar: an assertion of another dialect, or a name that no reference resolved."""
    for pointer, schema in schemas.items():
        for keyword in schema if isinstance(schema, dict) else ():
            if keyword in ELSEWHERE:
                raise UnsupportedGrammar(f"`{keyword}` is not a keyword of JSON Schema 2020-12", join(pointer, keyword))
            if keyword in IDENTIFIERS and (keyword != "$id" or pointer):
                raise UnsupportedGrammar(f"`{keyword}` is not supported: refer by JSON pointer", join(pointer, keyword))
