"""The guard of one request: takes tokens away that would repeat a member's name, or an item where none may come twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np

from grammar_service.guards.bodies import Added, Values, endless_forms, is_free
from grammar_service.guards.follower import Cursor, Follower, Open, Where
from grammar_service.guards.forms import Form
from grammar_service.guards.item_set import ItemSet, Listed
from grammar_service.guards.name_tokens import NameTokens, Row, TokenSet, forbid, token_set
from grammar_service.guards.names import Names
from grammar_service.guards.places import Place

_PLENTY = 2
"""Items that are left: one may be written, and a comma come behind it."""


class Guard:
    """Follows the tokens that a matcher of JSON texts has accepted. Where it takes tokens away, others are left: the grammars that it is
    for have always another name or item."""

    def __init__(self, tokens: NameTokens, places: Sequence[Place] = (), forms: Sequence[Form] = ()) -> None:
        self._tokens = tokens
        self._forms = forms
        self._follower = Follower(tokens, places, forms)
        self._course: list[tuple[Cursor, Added]] = [(self._follower.start(), [])]

    def accept(self, token: int) -> bool:
        """Go on by a token; False (state unchanged) where it repeats something."""
        added: Added = []
        after = self._follower.advance(self._course[-1][0], self._tokens.text(token), added)
        if after is None:
            return False
        for held, text in added:
            held.add(text)
        self._course.append((after, added))
        return True

    def rollback(self, n: int) -> None:
        """Take back the last n accepted tokens."""
        for _ in range(n):
            _, added = self._course.pop()
            for held, text in reversed(added):
                held.drop(text)

    def take_away(self, row: Row) -> None:
        """Forbid what would not be accepted: int32 [ceil(V/32)], of a matcher in the same state."""
        cursor = self._course[-1][0]
        if cursor.open is not None:
            self._take_repeating(cursor, cursor.open, row)
        self._take_refused(self._tokens.several, cursor, row)

    def reset(self) -> None:
        self._course = [(self._follower.start(), [])]

    def _take_repeating(self, cursor: Cursor, inside: Open, row: Row) -> None:
        if inside.names:
            self._take_names(cursor, inside.names, row)
        if isinstance(inside.items, ItemSet):
            self._take_items(cursor, inside.items, row)
        if inside.holds_items:
            self._take_values(cursor, inside, row)

    def _take_names(self, cursor: Cursor, names: Names, row: Row) -> None:
        if cursor.where is Where.NAME:
            self._keep_open(cursor, names, row)
        elif cursor.where is Where.BEFORE_NAME:
            for tokens in names.repeating_whole():
                tokens.clear(row)

    def _take_items(self, cursor: Cursor, items: ItemSet, row: Row) -> None:
        match cursor.where:
            case Where.ITEM | Where.OUTSIDE if items.listed is not None:
                self._take_listed(cursor, items.listed, row)
            case Where.ITEM:
                self._keep_open(cursor, items.strings, row)
            case Where.OUTSIDE | Where.NUMBER:
                for tokens in items.strings.repeating_whole():
                    tokens.clear(row)
                if cursor.text in items.numbers:
                    self._tokens.after_numbers.clear(row)
                self._take_refused(self._tokens.numeric, cursor, row)

    def _take_values(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """Inside of items that may be of any kind."""
        in_string = cursor.where in (Where.ITEM, Where.NAME)
        self._take_refused(self._tokens.quoted_far if in_string else self._tokens.far, cursor, row)
        if cursor.where in (Where.OUTSIDE, Where.NUMBER):
            self._take_refused(self._tokens.numeric, cursor, row)
        if not (roots := _with_items(inside)):
            return
        if self._is_close(cursor, inside):
            self._take_each(cursor, inside, row)
            return
        self._take_ending(cursor, inside, roots, row)
        if isinstance(inside.items, Values):
            self._take_scalars(cursor, inside.items, row)
        elif _is_passed(inside):
            if in_string:
                self._take_refused(self._tokens.quoted, cursor, row)
            elif cursor.where is Where.NUMBER:
                self._take_refused(self._tokens.after_numbers, cursor, row)

    def _take_ending(self, cursor: Cursor, inside: Open, roots: Sequence[Values], row: Row) -> None:
        """Where an object or array ends with what stands there now: it matters only if some item has it in itself."""
        match cursor.where:
            case Where.ITEM if cursor.pending:
                self._take_refused(self._tokens.quoted_closers, cursor, row)
            case Where.ITEM:
                for root in roots:
                    for tokens in root.inner.repeating(cursor.text):
                        self._take_refused(tokens, cursor, row)
            case Where.NUMBER | Where.WORD:
                self._take_refused(self._tokens.closers, cursor, row)
            case Where.OUTSIDE | Where.BEFORE_NAME if inside.body is not None:
                value = inside.body.value(inside.is_object)
                if any(root.contains(value) for root in roots):
                    self._take_refused(self._tokens.closers, cursor, row)

    def _is_close(self, cursor: Cursor, inside: Open) -> bool:
        """Whether what comes next may be one of few, and others came here before."""
        if is_free(inside.site) if isinstance(inside.items, Values) else not _is_passed(inside):
            return False
        match cursor.where:
            case Where.ITEM:
                return not endless_forms(inside.site, "string", self._forms)
            case Where.NUMBER:
                return not endless_forms(inside.site, "number", self._forms)
        return True

    def _take_each(self, cursor: Cursor, inside: Open, row: Row) -> None:
        """All tokens but those that begin a string which always goes on."""
        begins = cursor.where is Where.OUTSIDE and bool(endless_forms(inside.site, "string", self._forms))
        for token in _allowed(row, self._tokens.blank):
            text = self._tokens.text(token)
            if begins and text.count(b'"') == 1 and text.lstrip()[:1] == b'"':
                continue
            if self._follower.advance(cursor, text, []) is None:
                forbid(row, token)

    def _take_scalars(self, cursor: Cursor, items: Values, row: Row) -> None:
        match cursor.where:
            case Where.ITEM:
                self._keep_open(cursor, items.strings, row)
            case Where.OUTSIDE | Where.NUMBER:
                for tokens in items.strings.repeating_whole():
                    tokens.clear(row)
                text = cursor.text
                if text[-1:].isdigit() and not items.is_new(Decimal(text.decode()), ()):
                    self._tokens.after_numbers.clear(row)

    def _keep_open(self, cursor: Cursor, names: Names, row: Row) -> None:
        """A name that is being written must not become one of `names`."""
        begun = cursor.text
        if cursor.pending:
            for token, end in self._tokens.behind(cursor.pending):
                if begun + end in names:
                    forbid(row, token)
            alone = self._tokens.alone(cursor.pending)
            if alone is None:
                return
            begun += alone
        for tokens in names.repeating(begun):
            tokens.clear(row)

    def _take_refused(self, tokens: TokenSet, cursor: Cursor, row: Row) -> None:
        """Of tokens that may reach far, one by one."""
        for token in tokens.among(row):
            if self._follower.advance(cursor, self._tokens.text(token), []) is None:
                forbid(row, token)

    def _take_listed(self, cursor: Cursor, listed: Listed, row: Row) -> None:
        """In an array of listed strings, where few tokens are allowed besides blanks."""
        if listed.left(b"") < _PLENTY or cursor.pending:
            self._take_refused(token_set(_allowed(row, self._tokens.blank)), cursor, row)
            return
        for tokens in listed.repeating(cursor.text) if cursor.where is Where.ITEM else listed.repeating_whole():
            tokens.clear(row)
        self._take_refused(self._tokens.into, cursor, row)
        if cursor.where is Where.ITEM:
            self._take_refused(self._tokens.escaped, cursor, row)
            for token in _allowed(row, self._tokens.special):
                if listed.left(cursor.text + self._tokens.text(token)) <= 0:
                    forbid(row, token)


def _is_passed(inside: Open) -> bool:
    """Whether an item came here before, where the ways to go on are counted."""
    body = inside.body
    return body is not None and bool(body.layouts) and body.site.root.passed(body.state) > 0


def _with_items(inside: Open) -> list[Values]:
    """The arrays of different items that something is in, as far as they have an item."""
    found: list[Values] = []
    at: Open | None = inside
    while at is not None and at.holds_items:
        if isinstance(at.items, Values) and at.items.passed(at.items.site.state):
            found.append(at.items)
        at = at.outer
    return found


def _allowed(row: Row, but: TokenSet) -> Iterator[int]:
    """The tokens that a row allows, but for some."""
    row = row.copy()
    but.clear(row)
    for word in np.flatnonzero(row).tolist():
        bits = int(row[word]) & 0xFFFFFFFF
        while bits:
            yield word * 32 + (bits & -bits).bit_length() - 1
            bits &= bits - 1
