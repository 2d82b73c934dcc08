"""The document that is read, and what reading it may cost."""

from __future__ import annotations

from collections.abc import Mapping

from grammar_service.regexes.effort import Effort
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.json_text import Json

MAX_READINGS = 8000
"""Schemas read for one document, those that are read again in another combination included."""
MAX_READING_DEPTH = 60
"""Schemas read while others are: each takes up to eight calls, and Python has a thousand."""
DOCUMENT_EFFORT = 1_000_000
"""Steps for all patterns and combinations of one document: about a second."""


class Document:
    """`schemas` by pointer, with all references checked; `effort` is for its patterns and combinations together."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self.schemas = schemas
        self.effort = Effort(DOCUMENT_EFFORT)
        self._patterns: dict[str, Pattern] = {}
        self._readings = 0
        self._depth = 0

    def pattern(self, text: str) -> Pattern:
        return self._patterns.setdefault(text, Pattern(text, self.effort))

    def enter(self) -> None:
        """One more schema is being read. Raises Inexact: that are too many, or too many inside one another."""
        self._readings += 1
        self._depth += 1
        if self._readings > MAX_READINGS or self._depth > MAX_READING_DEPTH:
            raise Inexact("the schema has too many combinations")

    def leave(self) -> None:
        self._depth -= 1

    @property
    def is_deep(self) -> bool:
        """Whether to look no further where that can be helped."""
        return self._depth > MAX_READING_DEPTH // 2
