"""Where a schema is read for what it does *not* allow: there a narrower reading of a part would widen the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, walk

_NEGATING = frozenset({"not", "if", "oneOf", "contains"})
_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def negates(schemas: Iterable[Json]) -> bool:
    """Whether any of the schemas of a document looks at the complement of a part."""
    return any(isinstance(schema, dict) and (_NEGATING | _UNEVALUATED) & schema.keys() for schema in schemas)


def negates_format(schemas: Iterable[Json]) -> bool:
    """Whether such a part has a `format`, or a reference, which may lead to one."""
    listed = [schema for schema in schemas if isinstance(schema, dict)]
    keywords = _NEGATING | ({"anyOf"} if any(_UNEVALUATED & schema.keys() for schema in listed) else frozenset())
    return any({"format", "$ref"} & schema.keys() for schema in _parts(listed, keywords))


def _parts(schemas: list[Schema], keywords: frozenset[str]) -> Iterator[Schema]:
    """All schemas below the keywords; one inside another is told twice, but no deeper: the outermost holds the rest."""
    seen: set[int] = set()
    for schema in schemas:
        for keyword in keywords & schema.keys():
            value = schema[keyword]
            for part in value if isinstance(value, list) else [value]:
                for _, inner in () if id(part) in seen else walk(part):
                    if isinstance(inner, dict):
                        seen.add(id(inner))
                        yield inner
