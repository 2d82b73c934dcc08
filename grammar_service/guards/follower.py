"""Where a JSON text stands: its open objects and arrays, and whether a name, a string or something else is being written."""

from __future__ import annotations

import re
from enum import IntEnum, auto
from typing import NamedTuple

from grammar_service.guards.escapes import read
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.names import Names

_STRUCTURE = re.compile(rb'["{}\[\],]')


class Where(IntEnum):
    """OUTSIDE: of strings, where no name comes next. BEFORE_NAME: in an object, behind its `{` or a comma."""

    OUTSIDE = auto()
    BEFORE_NAME = auto()
    NAME = auto()
    STRING = auto()


class Open(NamedTuple):
    """An open object with its names, or an array (None), inside of others."""

    names: Names | None
    outer: Open | None


class Cursor(NamedTuple):
    """`name`: as much as is known of the name that is being written; `pending`: an escape that has begun in it, or in another string."""

    where: Where = Where.OUTSIDE
    open: Open | None = None
    name: bytes = b""
    pending: bytes = b""


START = Cursor()
Added = list[tuple[Names, bytes]]
"""Names that are complete, with their objects."""


class Follower:
    """Follows texts that a grammar of JSON allows; its cursors are never changed."""

    def __init__(self, tokens: NameTokens) -> None:
        self._tokens = tokens

    def advance(self, cursor: Cursor, text: bytes, added: Added) -> Cursor | None:
        """The cursor after more text, whose names go to `added`; None where one of them repeats another of its object."""
        at, (where, inside, name, pending) = 0, cursor
        while at < len(text):
            if where is Where.STRING:
                pending, at = _behind_string(pending, text, at)
                where = Where.STRING if at < 0 else Where.OUTSIDE
            elif where is Where.NAME:
                piece = read(pending, text, at)
                name, pending, at = name + piece.text, piece.pending, piece.end + 1
                if piece.end >= 0:
                    if not _add(inside, name, added):
                        return None
                    where, name = Where.OUTSIDE, b""
            else:
                found = _STRUCTURE.search(text, at)
                if found is None:
                    break
                at = found.end()
                where, inside = self._behind(found[0], where, inside)
            if at <= 0:
                break
        return Cursor(where, inside, name, pending)

    def _behind(self, sign: bytes, where: Where, inside: Open | None) -> tuple[Where, Open | None]:
        match sign:
            case b'"':
                return (Where.NAME if where is Where.BEFORE_NAME else Where.STRING), inside
            case b"{":
                return Where.BEFORE_NAME, Open(Names(self._tokens), inside)
            case b"[":
                return Where.OUTSIDE, Open(None, inside)
            case b",":
                return (Where.BEFORE_NAME if inside is not None and inside.names is not None else Where.OUTSIDE), inside
            case _:
                return Where.OUTSIDE, None if inside is None else inside.outer


def _add(inside: Open | None, name: bytes, added: Added) -> bool:
    """Whether the name is new to the object; then it is one of the added ones."""
    names = inside.names if inside is not None else None
    if names is None:
        return True
    if name in names or any(names is others and name == other for others, other in added):
        return False
    added.append((names, name))
    return True


_STRING_END = re.compile(rb'["\\]')


def _behind_string(pending: bytes, text: bytes, at: int) -> tuple[bytes, int]:
    """The backslash that the text ends in, and where the text goes on behind the string; -1 where it does not end."""
    at += len(pending)
    while (found := _STRING_END.search(text, at)) is not None:
        if found[0] == b'"':
            return b"", found.end()
        at = found.end() + 1
    return b"\\" if at > len(text) else b"", -1
