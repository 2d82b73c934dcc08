"""What may not come next in arrays of strings and numbers where none may come twice."""

from __future__ import annotations

from grammar_service.guards.follower import Cursor, Where
from grammar_service.guards.item_set import ItemSet, Listed
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.removal import Removal, allowed
from grammar_service.guards.tokens.token_set import Row

_SIGNS = (b"", b"-")


class SetGuard:
    """Takes it away."""

    def __init__(self, tokens: NameTokens, removal: Removal) -> None:
        self._tokens = tokens
        self._removal = removal

    def take(self, cursor: Cursor, items: ItemSet, row: Row) -> None:
        """At a cursor directly in the array."""
        match cursor.where:
            case Where.ITEM | Where.OUTSIDE if items.listed is not None:
                self._take_listed(cursor, items.listed, row)
            case Where.ITEM:
                self._removal.repeating(items.strings, cursor, row)
                self._removal.refused(self._tokens.quoted_numeric, cursor, row)
            case Where.OUTSIDE | Where.NUMBER:
                for tokens in items.strings.repeating_whole():
                    tokens.clear(row)
                self._take_numbers(cursor, items, row)

    def _take_numbers(self, cursor: Cursor, items: ItemSet, row: Row) -> None:
        if cursor.text in items.numbers:
            self._tokens.after_numbers.clear(row)
        self._tokens.exponents.clear(row)
        self._removal.refused(self._tokens.ended_numbers, cursor, row)
        if items.is_whole:
            if cursor.text in _SIGNS and b"0" in items.numbers:
                self._removal.refused(self._tokens.zeros, cursor, row)
            self._removal.refused(self._tokens.later_zeros, cursor, row)

    def _take_listed(self, cursor: Cursor, listed: Listed, row: Row) -> None:
        """Of listed strings, which may run out."""
        if cursor.pending:
            self._removal.each(allowed(row, self._tokens.blank), cursor, row)
        elif cursor.where is Where.ITEM:
            self._take_in_listed(cursor, listed, row)
        else:
            for tokens in listed.repeating_whole():
                tokens.clear(row)
            self._removal.refused(self._tokens.into, cursor, row)
            match listed.left(b""):
                case 0:
                    self._tokens.items.comma.clear(row)
                case 1:
                    self._tokens.items.string_and_comma.clear(row)

    def _take_in_listed(self, cursor: Cursor, listed: Listed, row: Row) -> None:
        for tokens in listed.repeating(cursor.text):
            tokens.clear(row)
        listed.leading_nowhere(cursor.text).clear(row)
        self._removal.refused(self._tokens.through, cursor, row)
        self._removal.refused(self._tokens.escaped, cursor, row)
        if listed.left(b"") == 1:
            self._tokens.items.end_and_comma.clear(row)
