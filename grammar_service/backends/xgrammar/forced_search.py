"""Whether the matchers of a grammar look for forced text: xgrammar looks to its very end, however far that is."""

from __future__ import annotations

from dataclasses import dataclass

LONG = 64 * 1024
"""Bytes; to find as many takes 40 ms."""


@dataclass(slots=True)
class ForcedSearch:
    """Shared by the matchers of a grammar. Where little is forced, only the end of a deep recursion makes a long text; a grammar that has
    made one is asked no more."""

    allowed: bool

    def found(self, length: int) -> None:
        self.allowed = length <= LONG
