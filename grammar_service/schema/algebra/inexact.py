"""Where a rewrite ends."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.errors import GrammarError, UnsupportedGrammar


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something cannot be written exactly, or not in reasonable size. `pointer` is the JSON pointer of the keyword or schema where
    that came to light, None while nobody has said."""

    message: str
    pointer: str | None = None

    @classmethod
    def of(cls, error: GrammarError) -> Reason:
        return cls(error.message, error.pointer)


class Inexact(UnsupportedGrammar):
    """A reason on its way to whoever can do without, or to the user."""

    @classmethod
    def by(cls, reason: Reason) -> Inexact:
        return cls(reason.message, reason.pointer)
