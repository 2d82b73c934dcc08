"""What may not come next in arrays of strings and numbers where none may come twice."""

from __future__ import annotations

from grammar_service.guards.follower import Cursor, Where
from grammar_service.guards.item_set import Counted, ItemSet
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
            case Where.ITEM | Where.OUTSIDE if items.counted is not None:
                self.take_counted(cursor, items.counted, row)
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

    def take_counted(self, cursor: Cursor, strings: Counted, row: Row) -> None:
        """Of strings, or names, that may run out."""
        if cursor.where in (Where.ITEM, Where.NAME):
            self._take_in_counted(cursor, strings, row)
            return
        for tokens in strings.repeating_whole():
            tokens.clear(row)
        self._removal.refused(strings.into, cursor, row)
        match strings.left(b""):
            case 0:
                self._tokens.items.comma.clear(row)
            case 1:
                self._tokens.items.string_and_comma.clear(row)

    def take_dead_prefixes(self, cursor: Cursor, strings: Counted, row: Row) -> None:
        """Tokens in a string, but for those that end it, which lead to none that is left."""
        if not strings.may_end(cursor.text):
            return
        if cursor.pending:
            self._removal.each(allowed(row, self._tokens.blank), cursor, row)
        else:
            strings.leading_nowhere(cursor.text).clear(row)
            self._removal.refused(self._tokens.escaped, cursor, row)

    def _take_in_counted(self, cursor: Cursor, strings: Counted, row: Row) -> None:
        self.take_dead_prefixes(cursor, strings, row)
        if cursor.pending and strings.may_end(cursor.text):
            return
        self._removal.repeating(strings, cursor, row)
        self._removal.refused(strings.through, cursor, row)
        if strings.left(b"") == 1:
            self._tokens.items.end_and_comma.clear(row)
