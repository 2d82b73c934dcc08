"""What may not come next inside of items that may be of any kind, of arrays where none may come twice."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from decimal import Decimal

from grammar_service.guards.bodies import Values, forms_at, is_free
from grammar_service.guards.follower import Cursor, Open, Where
from grammar_service.guards.item_set import Counted
from grammar_service.guards.set_guard import SetGuard
from grammar_service.guards.tokens.item_tokens import Closing
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.removal import Removal, allowed
from grammar_service.guards.tokens.token_set import Row

_NOTHING: tuple[Hashable, ...] = (frozenset(), ())
_LOOKED_AT = 8
"""Members or items of each object or array."""
_EXPONENT = re.compile(rb"[eE]")


class ItemGuard:
    """Takes it away.

    An item that is new so far is known to stay so until it ends, save where ways are counted that others have taken. So only tokens matter
    that close as many brackets as it takes to come there, and most of them do nothing else.
    """

    def __init__(self, tokens: NameTokens, removal: Removal, sets: SetGuard) -> None:
        self._tokens = tokens
        self._removal = removal
        self._sets = sets

    def take(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """At a cursor directly in something that holds items, or a part of one."""
        self._take_numbers(cursor, inside, row)
        depth, where = _decisive(inside)
        if depth:
            self._take_closing(cursor, inside, depth, where, row)
        elif where.body is None and isinstance(where.items, Values) and is_free(where.items.site) and cursor.where is not Where.WORD:
            self._take_free(cursor, where.items, row)
        else:
            self._take_counted(cursor, inside, row)

    def _take_numbers(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Exponents that are too long, or not allowed at all; zeros that nothing can follow."""
        if cursor.where not in (Where.OUTSIDE, Where.NUMBER):
            return
        if not is_free(inside.site):
            self._removal.refused(self._tokens.numeric, cursor, row)
        elif cursor.where is Where.NUMBER and _EXPONENT.search(cursor.text):
            self._removal.each(allowed(row, self._tokens.blank), cursor, row)
        else:
            self._removal.refused(self._tokens.long_exponents, cursor, row)

    def _take_free(self, cursor: Cursor, items: Values, row: Row) -> None:
        """Directly in an array whose items are endlessly many of each type, and that is in no other item."""
        if cursor.where is Where.ITEM:
            self._removal.repeating(items.strings, cursor, row)
            self._removal.refused(self._tokens.quoted_far if cursor.pending else self._tokens.items.beyond_string, cursor, row)
            return
        self._take_scalars(cursor, items, row)
        for nothing, tokens in zip(_NOTHING, (self._tokens.items.empty_objects, self._tokens.items.empty_arrays), strict=True):
            if not items.is_new(nothing, ()):
                tokens.clear(row)
        self._removal.refused(self._tokens.items.beyond, cursor, row)
        self._removal.refused(self._tokens.ended_numbers, cursor, row)

    def _take_closing(self, cursor: Cursor, inside: Open, depth: int, where: Open, row: Row) -> None:
        """Where nothing is decided before `depth` brackets are closed."""
        in_string = cursor.where in (Where.ITEM, Where.NAME)
        if cursor.where is Where.ITEM and cursor.pending:
            self._removal.refused(self._tokens.quoted_closers, cursor, row)
            return
        if cursor.where is Where.ITEM:
            self._take_ends_of_strings(cursor, inside, row)
        levels = self._tokens.items.in_string if in_string else self._tokens.items.outside
        if depth > len(levels):
            return
        closing = levels[depth - 1]
        self._removal.refused(closing.more, cursor, row)
        if cursor.where is not Where.NAME:
            self._take_plain(closing, cursor, inside, depth, where, row)

    def _take_ends_of_strings(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Tokens that hold the rest of a string that is in an item."""
        at_once = self._tokens.ending.get(b"")
        for root in _with_items(inside):
            for tokens in root.ending.repeating(cursor.text):
                if tokens is not at_once:
                    self._removal.refused(tokens, cursor, row)

    def _take_plain(self, closing: Closing, cursor: Cursor, inside: Open, depth: int, where: Open, row: Row) -> None:
        """Tokens that close brackets, first of all."""
        _, root = _root(where)
        is_free_root = where.items is root and is_free(root.site)
        is_free_alone = is_free_root and where.body is None
        if not is_free_root:
            self._removal.refused(closing.begun, cursor, row)
        if where.items is root and where.body is None and root.has_plenty and _is_new(cursor, inside, root):
            return
        if not closing.plain.is_any(row):
            return
        if self._removal.is_refused(b'"' * (cursor.where is Where.ITEM) + _brackets(inside, depth), cursor):
            closing.plain.clear(row)
            return
        if not is_free_root:
            self._removal.refused(closing.comma, cursor, row)
        if not is_free_alone:
            self._removal.refused(closing.begun, cursor, row)
            self._removal.refused(closing.deeper, cursor, row)

    def _take_counted(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Where the ways to go on are counted, and others have been here."""
        in_string = cursor.where in (Where.ITEM, Where.NAME)
        self._removal.refused(self._tokens.quoted_far if in_string else self._tokens.far, cursor, row)
        if cursor.where in (Where.OUTSIDE, Where.NUMBER):
            self._removal.refused(self._tokens.ended_numbers, cursor, row)
        roots = _with_items(inside)
        if not roots and not isinstance(inside.items, Values):
            return
        if self._is_close(cursor, inside):
            self._take_each(cursor, inside, row)
            return
        self._take_ending(cursor, inside, roots, row)
        if cursor.where is Where.ITEM:
            self._take_exhausted_prefixes(cursor, inside, row)
        if isinstance(inside.items, Values):
            self._take_scalars(cursor, inside.items, row)
            self._take_next(cursor, inside, row)
        elif _is_passed(inside):
            if in_string:
                self._take_strings(cursor, inside, row)
            elif cursor.where is Where.NUMBER:
                self._removal.refused(self._tokens.after_numbers, cursor, row)

    def _take_strings(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Of strings that always go on: one that is in no item yet leads where no item has been, until what it is in ends."""
        if cursor.pending:
            self._removal.refused(self._tokens.quoted, cursor, row)
            return
        depth, root = _root(inside)
        for tokens in root.inner.repeating(cursor.text):
            self._removal.refused(tokens, cursor, row)
        if not root.has_plenty:
            self._removal.refused(self._tokens.quoted_closers, cursor, row)
        if depth <= len(self._tokens.items.in_string):
            closing = self._tokens.items.in_string[depth - 1]
            for tokens in (closing.more, closing.begun, *(() if root.has_plenty else (closing.comma,))):
                self._removal.refused(tokens, cursor, row)

    def _take_exhausted_prefixes(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """What leads, in a string, to none that is left."""
        if left := _left(inside):
            self._sets.take_dead_prefixes(cursor, left, row)

    def _take_exhausted_beginnings(self, cursor: Cursor, row: Row) -> None:
        """What leads to such a string, and begins it."""
        after = self._removal.after(b'"', cursor)
        if after is None or after.open is None:
            self._removal.refused(self._tokens.blank_or_begun, cursor, row)
        elif left := _left(after.open):
            self._removal.refused(left.into, cursor, row)

    def _take_ending(self, cursor: Cursor, inside: Open, roots: Sequence[Values], row: Row) -> None:
        """Where an object or array ends with what stands there now: it matters only if some item has it in itself."""
        match cursor.where:
            case Where.ITEM if cursor.pending:
                self._removal.refused(self._tokens.quoted_closers, cursor, row)
            case Where.ITEM:
                for root in roots:
                    for tokens in root.ending.repeating(cursor.text):
                        self._removal.refused(tokens, cursor, row)
            case Where.NUMBER | Where.WORD:
                self._removal.refused(self._tokens.closers, cursor, row)
            case Where.OUTSIDE | Where.BEFORE_NAME if inside.body is not None:
                value = inside.body.value(inside.is_object)
                if any(root.contains(value) for root in roots):
                    self._removal.refused(self._tokens.closers, cursor, row)

    def _is_close(self, cursor: Cursor, inside: Open) -> bool:
        """Whether what comes next may be one of few, and others came here before."""
        if is_free(inside.site) if isinstance(inside.items, Values) else not _is_passed(inside):
            return False
        match cursor.where:
            case Where.ITEM:
                return False
            case Where.NUMBER:
                return not self._goes_on(inside, "number")
        return True

    def _goes_on(self, inside: Open, kind: str) -> bool:
        """Whether a value of that type which is written there can always become endlessly many others, or nothing of it is counted."""
        return is_free(inside.site) or any(kind in form.endless for form in forms_at(inside.site))

    def _take_each(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """All tokens; of those that begin a string, such as lead to few."""
        begins = cursor.where is Where.OUTSIDE
        self._removal.each(allowed(row, self._tokens.blank_or_begun if begins else self._tokens.blank), cursor, row)
        if begins:
            self._take_exhausted_beginnings(cursor, row)
        elif cursor.where is Where.NUMBER:  # which space ends
            self._removal.refused(self._tokens.blank, cursor, row)

    def _take_scalars(self, cursor: Cursor, items: Values, row: Row) -> None:
        match cursor.where:
            case Where.ITEM:
                self._removal.repeating(items.strings, cursor, row)
            case Where.OUTSIDE | Where.NUMBER:
                for tokens in items.strings.repeating_whole():
                    tokens.clear(row)
                text = cursor.text
                if text[-1:].isdigit() and not items.is_new(Decimal(text.decode()), ()):
                    self._tokens.after_numbers.clear(row)

    def _take_next(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Tokens that end a string or a number, of which there are endlessly many, and begin an item of which there may be no more."""
        items, in_string = self._tokens.items, cursor.where is Where.ITEM
        self._removal.refused(items.end_begins_other if in_string else items.begins_other, cursor, row)
        if not self._goes_on(inside, "string"):
            self._removal.refused(items.end_begins_string if in_string else items.begins_string, cursor, row)
        if in_string and isinstance(inside.items, Values) and not inside.items.has_plenty:
            self._removal.refused(items.end_and_comma, cursor, row)


def _left(inside: Open) -> Counted | None:
    """What is left of the strings that may stand there, where they may run out and some have."""
    site = inside.site
    strings = site.root.strings_at(site.forms)
    return (strings and site.root.remaining_strings(site.state, strings)) or None


def _decisive(inside: Open) -> tuple[int, Open]:
    """How many brackets close until an item is complete, or ways are counted that others have taken; and what stands around them."""
    depth, at = 0, inside
    while not isinstance(at.items, Values) and not _is_passed(at):
        assert at.outer is not None, "an item is in an array"
        depth, at = depth + 1, at.outer
    return depth, at


def _is_new(cursor: Cursor, inside: Open, root: Values) -> bool:
    """Whether the item differs from all others by a string, as far as a short look tells."""
    if cursor.where is Where.ITEM and cursor.text not in root.inner:
        return True
    at = inside
    while at.items is not root:
        assert at.body is not None, "it is inside of an item"
        assert at.outer is not None, "it is inside of an item"
        for part in at.body.parts[:_LOOKED_AT]:
            value = part[1] if at.is_object else part
            if isinstance(value, bytes) and value not in root.inner:
                return True
        at = at.outer
    return False


def _root(inside: Open) -> tuple[int, Values]:
    """The array whose item it is in, and how many brackets close until that is complete."""
    depth, at = 0, inside
    while not isinstance(at.items, Values):
        assert at.outer is not None, "an item is in an array"
        depth, at = depth + 1, at.outer
    return depth, at.items


def _brackets(inside: Open, depth: int) -> bytes:
    """Those that close."""
    brackets, at = b"", inside
    for _ in range(depth):
        brackets += b"}" if at.is_object else b"]"
        assert at.outer is not None, "it is inside of an item"
        at = at.outer
    return brackets


def _is_passed(inside: Open) -> bool:
    """Whether an item came here before, where the ways to go on are counted."""
    body = inside.body
    return body is not None and bool(body.layouts) and body.site.root.passed(body.state) > 0


def _with_items(inside: Open) -> list[Values]:
    """The arrays of different items that something is in, as far as they have an item."""
    found: list[Values] = []
    at: Open | None = inside
    while at is not None and at.holds_items:
        if isinstance(at.items, Values) and at.items:
            found.append(at.items)
        at = at.outer
    return found
