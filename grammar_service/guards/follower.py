"""Where a JSON text stands: its open objects and arrays, and whether a name, a string or something else is being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import NamedTuple

from grammar_service.guards.escapes import read
from grammar_service.guards.item_set import ItemSet, Numbers
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.names import Names
from grammar_service.guards.places import FREE, Place

_STRUCTURE = re.compile(rb'["{}\[\],]')
_STRUCTURE_OR_NUMBER = re.compile(rb'["{}\[\],\-0-9]')
_STRING_END = re.compile(rb'["\\]')
_NUMBER = re.compile(rb"[-+.0-9]*")


class Where(IntEnum):
    """OUTSIDE: of strings, where no name comes next. BEFORE_NAME: in an object, behind its `{` or a comma. ITEM, NUMBER: in an array where
    nothing may come twice. STRING: any other string that is no name."""

    OUTSIDE = auto()
    BEFORE_NAME = auto()
    NAME = auto()
    ITEM = auto()
    NUMBER = auto()
    STRING = auto()


class Open(NamedTuple):
    """An open object or array, with its names and items where none may come twice; its place, and what it is in."""

    is_object: bool
    names: Names | None
    items: ItemSet | None
    place: int
    outer: Open | None


class Cursor(NamedTuple):
    """`text`: as much as is known of the name or item that is being written; `pending`: an escape that has begun in it, or in another
    string. `place`: that of the value that comes next or is being written."""

    where: Where = Where.OUTSIDE
    open: Open | None = None
    text: bytes = b""
    pending: bytes = b""
    place: int = FREE


Added = list[tuple[Names | Numbers, bytes]]
"""Names and items that are complete, with what holds those of their object or array."""


class Follower:
    """Follows texts that a grammar of JSON allows; its cursors are never changed. `places`: of its schema, none where all is FREE."""

    def __init__(self, tokens: NameTokens, places: Sequence[Place] = ()) -> None:
        self._tokens = tokens
        self._places = places

    def start(self) -> Cursor:
        return Cursor(place=0 if self._places else FREE)

    def advance(self, cursor: Cursor, piece: bytes, added: Added) -> Cursor | None:
        """The cursor after more text, whose names and items go to `added`; None where one of them is there already, or would have to be."""
        at = 0
        after: Cursor | None
        while 0 <= at < len(piece):
            match cursor.where:
                case Where.STRING:
                    after, at = _in_string(cursor, piece, at)
                case Where.NAME | Where.ITEM:
                    after, at = self._in_text(cursor, piece, at, added)
                case Where.NUMBER:
                    after, at = _in_number(cursor, piece, at, added)
                case _:
                    after, at = self._outside(cursor, piece, at, added)
            if after is None:
                return None
            cursor = after
        return None if _is_stuck(cursor, added) else cursor

    def _in_text(self, cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
        where, inside, text, pending, place = cursor
        read_on = read(pending, piece, at)
        text += read_on.text
        if read_on.end < 0:
            return Cursor(where, inside, text, read_on.pending, place), -1
        assert inside is not None, "a name or an item is in something"
        held = inside.names if inside.items is None else inside.items.strings
        if held is not None and not _add(held, text, added):
            return None, -1
        if where is Where.NAME and inside.place != FREE:
            there = self._places[inside.place]
            place = there.names.get(text.decode("utf-8", "surrogatepass"), there.others)
        return Cursor(Where.OUTSIDE, inside, place=place), read_on.end + 1

    def _outside(self, cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
        where, inside, _, _, place = cursor
        distinct = inside is not None and inside.items is not None
        found = (_STRUCTURE_OR_NUMBER if distinct else _STRUCTURE).search(piece, at)
        if found is None:
            return cursor, -1
        match found[0]:
            case b'"':
                here = Where.NAME if where is Where.BEFORE_NAME else Where.ITEM if distinct else Where.STRING
                return Cursor(here, inside, place=place), found.end()
            case b"{":
                names = None if place != FREE and self._places[place].loose else Names(self._tokens)
                return Cursor(Where.BEFORE_NAME, Open(True, names, None, place, inside)), found.end()
            case b"[":
                there = self._places[place] if place != FREE else None
                items = ItemSet(self._tokens, there.distinct) if there is not None and there.distinct is not None else None
                return Cursor(open=Open(False, None, items, place, inside), place=there.items if there is not None else FREE), found.end()
            case b",":
                return self._behind_comma(inside, added), found.end()
            case b"}" | b"]":
                return Cursor(open=None if inside is None else inside.outer), found.end()
            case _:
                return Cursor(Where.NUMBER, inside), found.start()

    def _behind_comma(self, inside: Open | None, added: Added) -> Cursor | None:
        if inside is None or inside.is_object:
            return Cursor(Where.OUTSIDE if inside is None else Where.BEFORE_NAME, inside)
        if inside.items is not None and not _has_more(inside.items, b"", b"", added):
            return None
        return Cursor(open=inside, place=self._places[inside.place].items if inside.place != FREE else FREE)


def _in_string(cursor: Cursor, piece: bytes, at: int) -> tuple[Cursor, int]:
    at += len(cursor.pending)
    while (found := _STRING_END.search(piece, at)) is not None:
        if found[0] == b'"':
            return Cursor(open=cursor.open), found.end()
        at = found.end() + 1
    return Cursor(Where.STRING, cursor.open, pending=b"\\" if at > len(piece) else b""), -1


def _in_number(cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
    """Exponents would write one number in endlessly many ways that end alike: they are not allowed."""
    found = _NUMBER.match(piece, at)
    end = found.end() if found is not None else at
    text, inside = cursor.text + piece[at:end], cursor.open
    if end == len(piece):
        return Cursor(Where.NUMBER, inside, text), -1
    if inside is None or inside.items is None or piece[end : end + 1] in b"eE" or not _add(inside.items.numbers, text, added):
        return None, -1
    return Cursor(open=inside), end


def _is_stuck(cursor: Cursor, added: Added) -> bool:
    """Whether the item that is being written can only become one that is there."""
    items = cursor.open.items if cursor.open is not None else None
    if items is None or cursor.where not in (Where.ITEM, Where.NUMBER):
        return False
    if cursor.where is Where.ITEM:
        return not _has_more(items, cursor.text, cursor.pending, added)
    return items.is_stuck(cursor.text, [text for held, text in added if held is items.numbers])


def _has_more(items: ItemSet, text: bytes, pending: bytes, added: Added) -> bool:
    return items.can_become(text, pending, [other for held, other in added if held is items.strings])


def _add(held: Names | Numbers, text: bytes, added: Added) -> bool:
    """Whether it is new there; then it is one of the added ones."""
    if text in held or any(held is others and held.is_same(text, other) for others, other in added):
        return False
    added.append((held, text))
    return True
