"""How large a document becomes when each of its schemas has its pointer and its URI."""

from __future__ import annotations

from grammar_service.errors import GrammarTooLarge

MAX_PARTS = 50_000
"""Schemas in one document: about a second from its text to the choice of a backend."""
MAX_CHARACTERS = 16 * 1024 * 1024
"""Of all pointers and URIs together: one long name above ten thousand schemas would be written ten thousand times."""


class Extent:
    """What is left of both. Raises GrammarTooLarge where nothing is."""

    def __init__(self) -> None:
        self._parts = MAX_PARTS
        self._characters = MAX_CHARACTERS

    def part(self, pointer: str) -> None:
        """One more schema."""
        self._parts -= 1
        if self._parts < 0:
            raise GrammarTooLarge(f"a schema may have {MAX_PARTS} parts, this one has more")
        self.text(pointer)

    def text(self, *texts: str) -> None:
        """One more pointer or URI, of these pieces."""
        self._characters -= sum(map(len, texts))
        if self._characters < 0:
            raise GrammarTooLarge("the names in this schema are too long for its many parts")
