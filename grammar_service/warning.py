"""What an answer says of words that ask for nothing, so that nobody takes them for heard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

MOST = 20
"""Warnings that an answer carries: the first ones tell what is wrong, and a hostile schema has thousands."""
LONGEST = 200
"""Characters of a pointer that an answer repeats."""
CLOSE = 0.8
"""Ratio of `difflib` from which a known word may have been meant: one edit in words of six letters and more."""


@dataclass(frozen=True, slots=True)
class ConstraintWarning:
    """`pointer` is the JSON pointer (RFC 6901) of the word, in the request or in the constraint, less its middle where that is long;
    `did_you_mean` a known word that is near it, None where none is."""

    code: str
    pointer: str
    message: str
    did_you_mean: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pointer", shortened(self.pointer))

    def body(self) -> dict[str, Any]:
        """As an answer has it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def shortened(pointer: str) -> str:
    """At most `LONGEST` characters: names in a schema may be as long as the schema, and answers that repeat them many times its length."""
    return pointer if len(pointer) <= LONGEST else f"{pointer[: LONGEST // 2]}…{pointer[-LONGEST // 2 + 1 :]}"


def characters(warnings: Iterable[ConstraintWarning]) -> int:
    """What the warnings take of memory, about."""
    return sum(len(warning.pointer) + len(warning.message) for warning in warnings)


def meant(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, if it is near enough."""
    return next(iter(get_close_matches(word, list(known), 1, CLOSE)), None)


def first(warnings: Iterable[ConstraintWarning]) -> tuple[ConstraintWarning, ...]:
    """The first MOST of them."""
    return tuple(islice(warnings, MOST))
