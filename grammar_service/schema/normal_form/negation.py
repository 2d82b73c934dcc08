"""Where a schema is read for what it does *not* allow: there a narrower reading of a part would widen the whole."""

from __future__ import annotations

from collections.abc import Iterable

from grammar_service.schema.json_text import Json

_NEGATING = frozenset({"not", "if", "oneOf", "contains"})
_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def negates(schemas: Iterable[Json]) -> bool:
    """Whether any of the schemas of a document looks at the complement of a part."""
    return any(isinstance(schema, dict) and (_NEGATING | _UNEVALUATED) & schema.keys() for schema in schemas)
