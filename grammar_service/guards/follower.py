"""Where a JSON text stands: its open objects and arrays, and whether a name, a string or something else is being written."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from decimal import Decimal
from enum import IntEnum, auto
from typing import NamedTuple

from grammar_service.guards.bodies import (
    MAX_NESTED_ITEMS,
    Added,
    Body,
    Item,
    Site,
    Values,
    VisitedState,
    another,
    extended,
    has_name,
    is_free,
    named,
    opened,
    site_in,
    with_comma,
)
from grammar_service.guards.forms import FREE, Form
from grammar_service.guards.item_set import Counted, ItemSet, Numbers, listing
from grammar_service.guards.names import Names
from grammar_service.guards.places import Place
from grammar_service.guards.tokens.escapes import read
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.ways import has_way

_STRUCTURE = re.compile(rb'["{}\[\],]')
_STRUCTURE_OR_NUMBER = re.compile(rb'["{}\[\],\-0-9]')
_STRUCTURE_OR_SCALAR = re.compile(rb'["{}\[\],\-0-9tfn]')
_STRING_END = re.compile(rb'["\\]')
_NUMBER = re.compile(rb"[-+.0-9]*")
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]*")
_WORD = re.compile(rb"[a-z]*")
_EXPONENT = re.compile(rb"[eE][-+]?[0-9]{7}")


MAX_TEXT_BYTES = 32 << 10
"""Bytes of a name, or of a text where none may come twice; a request with a longer one ends."""


class Where(IntEnum):
    """OUTSIDE: of strings, where no name comes next. BEFORE_NAME: in an object, behind its `{` or a comma. ITEM, NUMBER, WORD: in an array
    where nothing may come twice, or inside of its items. STRING: any other string that is no name."""

    OUTSIDE = auto()
    BEFORE_NAME = auto()
    NAME = auto()
    ITEM = auto()
    NUMBER = auto()
    WORD = auto()
    STRING = auto()


class Open(NamedTuple):
    """An open object or array, with its names and items where none may come twice; its place, and what it is in. `body`: what is in it so
    far, inside of items."""

    is_object: bool
    names: Names | None
    items: ItemSet | Values | None
    place: int
    outer: Open | None
    body: Body | None = None

    @property
    def holds_items(self) -> bool:
        """Whether what stands directly in it is an item that may be of any kind, or a part of one."""
        return self.body is not None or isinstance(self.items, Values)

    @property
    def site(self) -> Site:
        """Of what stands next in it."""
        if isinstance(self.items, Values):
            return self.items.site
        assert self.body is not None, "a part of an item is in something"
        return site_in(self.body)


class Cursor(NamedTuple):
    """`text`: as much as is known of the name or item that is being written; `pending`: an escape that has begun in it, or in another
    string. `place`: that of the value that comes next or is being written."""

    where: Where = Where.OUTSIDE
    open: Open | None = None
    text: bytes = b""
    pending: bytes = b""
    place: int = FREE


class Follower:
    """Follows texts that a grammar of JSON allows; its cursors are never changed. `places`: of its schema, none where all is FREE;
    `forms`: of items that may be of any kind."""

    def __init__(self, tokens: NameTokens, places: Sequence[Place] = (), forms: Sequence[Form] = ()) -> None:
        self._tokens = tokens
        self._places = places
        self._forms = forms
        self._required = [_required(place) for place in places]
        self.has_members = any(place.members is not None for place in places)

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
                case Where.WORD:
                    after, at = _in_word(cursor, piece, at, added)
                case _:
                    after, at = self._outside(cursor, piece, at, added)
            if after is None:
                return None
            cursor = after
        return None if self.is_stuck(cursor, added) else cursor

    def lacks(self, inside: Open, added: Added) -> bool:
        """Whether an object whose members come in any order has not got all that it must have."""
        if not inside.is_object or inside.place == FREE or not (required := self._required[inside.place]):
            return False
        names = inside.names
        assert names is not None, "they are counted"
        new = _held_by(names, added)
        return any(name not in names and name not in new for name in required)

    def is_full(self, inside: Open, added: Added) -> bool:
        """Whether an object has all the names that it can have."""
        names = inside.names
        return isinstance(names, Counted) and not names.can_become(b"", b"", _held_by(names, added))

    def only_name(self, cursor: Cursor) -> bytes:
        """The name that is being written, if it can only become one; else nothing."""
        inside = cursor.open
        if cursor.where is not Where.NAME or cursor.pending or inside is None or not isinstance(inside.names, Counted):
            return b""
        names, members = inside.names, self._places[inside.place].members
        if names.left(cursor.text) != 1 or members is None or members.listed is None:
            return b""
        listed = (name.encode("utf-8") for name in members.listed)
        return next(name for name in listed if name.startswith(cursor.text) and name not in names)

    def is_stuck(self, cursor: Cursor, added: Added) -> bool:
        """Whether the name or the item that is being written can only become one that must not be."""
        inside = cursor.open
        if inside is None:
            return False
        if isinstance(inside.items, ItemSet):
            return _is_listed_stuck(cursor, inside.items, added)
        if cursor.where is Where.NAME:
            body, names = inside.body, inside.names
            if isinstance(names, Counted) and not names.can_become(cursor.text, cursor.pending, _held_by(names, added)):
                return True
            return body is not None and bool(body.layouts) and not has_name(body, cursor.text, cursor.pending, added)
        if not inside.holds_items or cursor.where not in (Where.ITEM, Where.NUMBER, Where.WORD):
            return False
        return not self._has_way(inside, cursor, added)

    def _has_way(self, inside: Open, cursor: Cursor, added: Added) -> bool:
        def end(value: Hashable) -> Open | None:
            return finished(inside, value, None, (), [*added])

        return has_way(inside.site, cursor.text, cursor.pending, cursor.where is Where.ITEM, added, end)

    def _in_text(self, cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
        where, inside, text, pending, place = cursor
        read_on = read(pending, piece, at)
        text += read_on.text
        if len(text) > MAX_TEXT_BYTES:
            return None, -1
        if read_on.end < 0:
            return Cursor(where, inside, text, read_on.pending, place), -1
        assert inside is not None, "a name or an item is in something"
        after = self._named(inside, text, added) if where is Where.NAME else _with_string(inside, text, added)
        if after is None:
            return None, -1
        if where is Where.NAME and inside.place != FREE:
            there = self._places[inside.place]
            place = there.names.get(text.decode("utf-8", "surrogatepass"), there.others)
        return Cursor(Where.OUTSIDE, after, place=place), read_on.end + 1

    def _named(self, inside: Open, name: bytes, added: Added) -> Open | None:
        if inside.names is not None and not _add(inside.names, name, added):
            return None
        if inside.body is None:
            return inside
        body = named(inside.body, name, added)
        return None if body is None else inside._replace(body=body)

    def _outside(self, cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
        where, inside, _, _, place = cursor
        known = inside is not None and inside.holds_items
        distinct = known or (inside is not None and inside.items is not None)
        found = (_STRUCTURE_OR_SCALAR if known else _STRUCTURE_OR_NUMBER if distinct else _STRUCTURE).search(piece, at)
        if found is None:
            return cursor, -1
        match found[0]:
            case b",":
                return self._behind_comma(inside, added), found.end()
            case b"}" | b"]":
                return None if inside is not None and self.lacks(inside, added) else _closed(inside, added), found.end()
        if where is Where.BEFORE_NAME:
            return Cursor(Where.NAME, inside, place=place), found.end()
        if inside is not None and inside.body is not None and (inside := _begun(inside, added)) is None:
            return None, -1
        match found[0]:
            case b'"':
                return Cursor(Where.ITEM if distinct else Where.STRING, inside, place=place), found.end()
            case b"{" | b"[":
                return self._opened(inside, place, found[0] == b"{", added), found.end()
            case _:
                return Cursor(Where.WORD if found[0].isalpha() else Where.NUMBER, inside), found.start()

    def _opened(self, inside: Open | None, place: int, is_object: bool, added: Added) -> Cursor | None:
        body = None
        if inside is not None and inside.holds_items:
            outer = None if isinstance(inside.items, Values) else inside.body
            depth = 1 if inside.body is None else inside.body.depth + 1
            if depth > MAX_NESTED_ITEMS or (body := opened(inside.site, is_object, outer, added)) is None:
                return None
            body = body._replace(depth=depth)
        there = self._places[place] if place != FREE else None
        if is_object:
            return Cursor(Where.BEFORE_NAME, Open(True, self._names(there), None, place, inside, body))
        items = None if there is None or there.distinct is None else self._items(there)
        return Cursor(open=Open(False, None, items, place, inside, body), place=there.items if there is not None else FREE)

    def _names(self, place: Place | None) -> Names | None:
        if place is not None and place.members is not None and place.members.listed is not None:
            return Counted(self._tokens, listing(self._tokens, place.members.listed))
        return None if place is not None and place.loose else Names(self._tokens)

    def _items(self, place: Place) -> ItemSet | Values:
        assert place.distinct is not None, "it has items of which none may come twice"
        form = place.distinct.form
        return ItemSet(self._tokens, place.distinct) if form is None else Values(self._tokens, form, self._forms)

    def _behind_comma(self, inside: Open | None, added: Added) -> Cursor | None:
        if inside is None:
            return Cursor()
        if inside.body is not None and not isinstance(inside.items, Values):
            body = (with_comma if inside.is_object else another)(inside.body, added)
            if body is None:
                return None
            inside = inside._replace(body=body)
        if inside.is_object:
            return None if self.is_full(inside, added) else Cursor(Where.BEFORE_NAME, inside)
        if isinstance(inside.items, ItemSet) and not _has_more(inside.items, b"", b"", added):
            return None
        if isinstance(inside.items, Values) and not inside.items.has_more(added):
            return None
        return Cursor(open=inside, place=self._places[inside.place].items if inside.place != FREE else FREE)


def finished(inside: Open, value: Hashable, digest: bytes | None, passed: tuple[VisitedState, ...], added: Added) -> Open | None:
    """What holds a value that has come to its end, with it; None where it must not be. Scalars need no digest."""
    if isinstance(inside.items, Values):
        if not inside.items.is_new(value, added):
            return None
        added.append((inside.items, Item(value, passed)))
        passed = ()
    if inside.body is None:
        return inside
    body = extended(inside.body, value, digest, passed, inside.is_object, added)
    return None if body is None else inside._replace(body=body)


def _begun(inside: Open, added: Added) -> Open | None:
    """With a value that begins: the first of an array has had no comma."""
    body = inside.body
    if body is None or inside.is_object or isinstance(inside.items, Values) or body.parts or not body.layouts:
        return inside
    body = another(body, added)
    return None if body is None else inside._replace(body=body)


def _closed(inside: Open | None, added: Added) -> Cursor | None:
    outer = None if inside is None else inside.outer
    if inside is None or outer is None or inside.body is None:
        return Cursor(open=outer)
    body, is_object = inside.body, inside.is_object
    after = finished(outer, body.value(is_object), body.digest(is_object), body.passed, added)
    return None if after is None else Cursor(open=after)


def _with_string(inside: Open, text: bytes, added: Added) -> Open | None:
    if isinstance(inside.items, ItemSet) and not _add(inside.items.strings, text, added):
        return None
    return finished(inside, text, None, (), added) if inside.holds_items else inside


def _in_string(cursor: Cursor, piece: bytes, at: int) -> tuple[Cursor, int]:
    at += len(cursor.pending)
    while (found := _STRING_END.search(piece, at)) is not None:
        if found[0] == b'"':
            return Cursor(open=cursor.open), found.end()
        at = found.end() + 1
    return Cursor(Where.STRING, cursor.open, pending=b"\\" if at > len(piece) else b""), -1


def _in_number(cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
    """Exponents would write one number in endlessly many ways that end alike: they are not allowed, save where it does not matter."""
    inside = cursor.open
    assert inside is not None, "a number is in something"
    listed = isinstance(inside.items, ItemSet)
    free = not listed and not isinstance(inside.items, Values) and is_free(inside.site)
    found = (_LONG_NUMBER if free else _NUMBER).match(piece, at)
    end = found.end() if found is not None else at
    text = cursor.text + piece[at:end]
    if _EXPONENT.search(text):
        return None, -1
    if end == len(piece):
        return Cursor(Where.NUMBER, inside, text), -1
    if piece[end : end + 1] in b"eE" or (isinstance(inside.items, ItemSet) and not _add(inside.items.numbers, text, added)):
        return None, -1
    after = finished(inside, Decimal(text.decode()), None, (), added) if inside.holds_items else inside
    return (None if after is None else Cursor(open=after)), end


def _in_word(cursor: Cursor, piece: bytes, at: int, added: Added) -> tuple[Cursor | None, int]:
    """`true`, `false`, `null`."""
    inside, found = cursor.open, _WORD.match(piece, at)
    assert inside is not None, "a word is in something"
    end = found.end() if found is not None else at
    text = cursor.text + piece[at:end]
    if end == len(piece):
        return Cursor(Where.WORD, inside, text), -1
    after = finished(inside, text.decode(), None, (), added)
    return (None if after is None else Cursor(open=after)), end


def _is_listed_stuck(cursor: Cursor, items: ItemSet, added: Added) -> bool:
    if cursor.where is Where.ITEM:
        return not _has_more(items, cursor.text, cursor.pending, added)
    return cursor.where is Where.NUMBER and items.is_stuck(cursor.text, [text for held, text in added if held is items.numbers])


def _held_by(names: Names, added: Added) -> list[bytes]:
    return [text for held, text in added if held is names]


def _required(place: Place) -> tuple[bytes, ...]:
    return () if place.members is None else tuple(name.encode("utf-8") for name in place.members.required)


def _has_more(items: ItemSet, text: bytes, pending: bytes, added: Added) -> bool:
    return items.can_become(text, pending, [other for held, other in added if held is items.strings])


def _add(held: Names | Numbers, text: bytes, added: Added) -> bool:
    """Whether it is new there; then it is one of the added ones."""
    if text in held or any(held is others and held.is_same(text, other) for others, other in added):
        return False
    added.append((held, text))
    return True
