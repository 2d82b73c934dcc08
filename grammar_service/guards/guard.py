"""The guard of one request: takes tokens away that would repeat a member's name, or an item where none may come twice, or that would close
an object which lacks members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grammar_service.guards.bodies import Added
from grammar_service.guards.follower import Cursor, Follower, Open, Where
from grammar_service.guards.forms import Form
from grammar_service.guards.item_guard import ItemGuard
from grammar_service.guards.item_set import Counted, ItemSet
from grammar_service.guards.names import Names
from grammar_service.guards.places import Place
from grammar_service.guards.set_guard import SetGuard
from grammar_service.guards.tokens.item_tokens import Closing
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.removal import IN_STRINGS, Removal
from grammar_service.guards.tokens.token_set import Row

RECENT, STRIDE = 256, 64
"""The last cursors are all kept, since forced segments and drafts are taken back; of the others one in so many."""
_NOTHING: tuple[Any, ...] = ()


class Guard:
    """Follows the tokens that a matcher of JSON texts has accepted. Where it takes tokens away, others are left: the grammars that it is
    for have always another name or item."""

    def __init__(self, tokens: NameTokens, places: Sequence[Place] = (), forms: Sequence[Form] = ()) -> None:
        self._tokens = tokens
        self._follower = Follower(tokens, places, forms)
        self._removal = Removal(tokens, self._follower)
        self._sets = SetGuard(tokens, self._removal)
        self._items = ItemGuard(tokens, self._removal, self._sets)
        self.reset()

    def forced(self, behind: bytes) -> bytes:
        """What follows this forced text as far as names tell: the rest of the only name that is left, with its quote."""
        cursor = self._cursors[-1]
        assert cursor is not None, "the last ones are kept"
        added: Added = []
        if not self._follower.has_members or (after := self._follower.advance(cursor, behind, added)) is None or added:
            return b""
        name = self._follower.only_name(after)
        return name[len(after.text) :] + b'"' if name else b""

    def accept(self, token: int) -> bool:
        """Go on by a token; False (state unchanged) where it repeats something."""
        added: Added = []
        cursor = self._cursors[-1]
        assert cursor is not None, "the last ones are kept"
        after = self._follower.advance(cursor, self._tokens.text(token), added)
        if after is None:
            return False
        for held, text in added:
            held.add(text)
        self._taken.append((token, added or _NOTHING))
        self._cursors.append(after)
        if (old := len(self._cursors) - 1 - RECENT) > 0 and old % STRIDE:
            self._cursors[old] = None
        return True

    def rollback(self, n: int) -> None:
        """Take back the last n accepted tokens. Where the cursor behind the others is not kept, they are taken again from one that is."""
        last = known = len(self._taken) - n
        while self._cursors[known] is None:
            known -= 1
        for _, added in reversed(self._taken[known:]):
            for held, text in reversed(added):
                held.drop(text)
        again = [token for token, _ in self._taken[known:last]]
        del self._taken[known:], self._cursors[known + 1 :]
        for token in again:
            self.accept(token)

    def take_away(self, row: Row) -> None:
        """Forbid what would not be accepted: int32 [ceil(V/32)], of a matcher in the same state."""
        cursor = self._cursors[-1]
        assert cursor is not None, "the last ones are kept"
        if cursor.open is not None:
            self._take_repeating(cursor, cursor.open, row)
        if self._follower.has_members:
            self._take_ends(cursor, row)
        self._removal.refused(self._tokens.several, cursor, row)

    def reset(self) -> None:
        self._cursors: list[Cursor | None] = [self._follower.start()]
        """Before each token, and behind the last: each has what is written of a name or an item, so that all of them would take memory with
        the square of its length."""
        self._taken: list[tuple[int, Sequence[Any]]] = []

    def _take_repeating(self, cursor: Cursor, inside: Open, row: Row) -> None:
        if inside.names:
            self._take_names(cursor, inside.names, row)
        if isinstance(inside.items, ItemSet):
            self._sets.take(cursor, inside.items, row)
        if inside.holds_items:
            self._items.take(cursor, inside, row)

    def _take_ends(self, cursor: Cursor, row: Row) -> None:
        """Brackets that would close an object which lacks members, commas in one that can have no more, and names behind commas that lead
        to none that is left."""
        in_string, tokens = cursor.where in IN_STRINGS, self._tokens
        self._removal.refused(tokens.quoted_objects if in_string else tokens.whole_objects, cursor, row)
        levels = tokens.items.behind_string if in_string else tokens.items.outside
        if cursor.pending:
            # The first character of a token is a part of an escape, so that its strings end elsewhere.
            self._removal.refused(tokens.quoted_marks, cursor, row)
            return
        last, inside, before, looked = self._is_last(cursor), cursor.open, None, False
        for closing in (*levels, None):
            if inside is None:
                return
            if last or self._follower.is_full(inside, []):
                self._take_commas(cursor, before, row)
            if not looked and isinstance(inside.names, Counted) and inside.names:
                self._removal.refused(tokens.quoted_next if in_string else tokens.next_begun, cursor, row)
                looked = True
            if closing is not None and self._follower.lacks(inside, []):
                closing.plain.clear(row)
                self._removal.refused(closing.more, cursor, row)
                return
            last, inside, before = False, inside.outer, closing

    def _is_last(self, cursor: Cursor) -> bool:
        """Whether the name that comes next, or is being written, is the last one that its object can have."""
        names = cursor.open.names if cursor.open is not None and cursor.where in (Where.NAME, Where.BEFORE_NAME) else None
        return isinstance(names, Counted) and names.left(b"") == 1

    def _take_commas(self, cursor: Cursor, behind: Closing | None, row: Row) -> None:
        """In the object that stands open, or in one that does when so many brackets are closed."""
        tokens = self._tokens
        in_string = cursor.where in IN_STRINGS
        if behind is None:
            (tokens.items.end_and_comma if in_string else tokens.items.comma).clear(row)
        else:
            behind.comma.clear(row)
            behind.begun.clear(row)
        self._removal.refused(tokens.quoted_commas if in_string else tokens.later_commas, cursor, row)

    def _take_names(self, cursor: Cursor, names: Names, row: Row) -> None:
        if isinstance(names, Counted) and cursor.where in (Where.NAME, Where.BEFORE_NAME):
            self._sets.take_counted(cursor, names, row)
        elif cursor.where is Where.NAME:
            self._removal.repeating(names, cursor, row)
        elif cursor.where is Where.BEFORE_NAME:
            for tokens in names.repeating_whole():
                tokens.clear(row)
