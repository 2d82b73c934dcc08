"""Boolean combinations of schemas: what a part of a value must satisfy, before anybody has looked into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar_service.schema.json_text import Json, text_of


@dataclass(frozen=True, slots=True)
class At:
    """The schema at a JSON pointer of the document."""

    pointer: str


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; no parts: everything is allowed."""

    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Negated:
    """The inner expression does not hold."""

    inner: Expression


@dataclass(frozen=True, slots=True)
class Exactly:
    """One JSON value, as its text: the order of properties is kept."""

    text: str


Expression = At | Every | Negated | Exactly

Empty = Callable[[Expression], bool]
"""True only where it is certain that no value satisfies an expression."""

ANYTHING = Every()
NOTHING = Negated(ANYTHING)


def at(schema: Json, pointer: str) -> Expression:
    """What the schema at a pointer says, told at once where that is all or nothing."""
    return ANYTHING if schema is True or schema == {} else NOTHING if schema is False else At(pointer)


def every(*parts: Expression) -> Expression:
    """The conjunction, without what is always true or said twice; the order of the parts is kept."""
    kept: dict[Expression, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, Every) else (part,):
            if inner == NOTHING:
                return NOTHING
            if negated(inner) in kept:
                return NOTHING
            kept[inner] = None
    return next(iter(kept)) if len(kept) == 1 else Every(tuple(kept))


def negated(inner: Expression) -> Expression:
    return inner.inner if isinstance(inner, Negated) else Negated(inner)


def exactly(value: Json) -> Expression:
    return Exactly(text_of(value))
