"""Tokens taken away from a row: those that a follower would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from grammar_service.guards.follower import Cursor, Follower, Where
from grammar_service.guards.names import Names
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.token_set import Row, TokenSet, forbid

IN_STRINGS = (Where.STRING, Where.NAME, Where.ITEM)


class Removal:
    """Of tokens that may be refused, at a cursor whose matcher has filled the row (int32 [ceil(V/32)])."""

    def __init__(self, tokens: NameTokens, follower: Follower) -> None:
        self._tokens = tokens
        self._follower = follower

    def refused(self, tokens: TokenSet, cursor: Cursor, row: Row) -> None:
        """One by one."""
        if tokens.is_any(row):
            self.each(tokens.among(row), cursor, row)

    def each(self, tokens: Iterable[int], cursor: Cursor, row: Row) -> None:
        in_string = cursor.where in IN_STRINGS
        known: dict[bytes, bool] = {}
        for token in tokens:
            text = self._tokens.text(token) if cursor.pending else self._tokens.alike(token, in_string)
            if text not in known:
                known[text] = self.is_refused(text, cursor)
            if known[text]:
                forbid(row, token)

    def is_refused(self, text: bytes, cursor: Cursor) -> bool:
        return self.after(text, cursor) is None

    def after(self, text: bytes, cursor: Cursor) -> Cursor | None:
        """Where a text leads; None: it is refused."""
        return self._follower.advance(cursor, text, [])

    def repeating(self, names: Names, cursor: Cursor, row: Row) -> None:
        """Those that make of a name, or of a string, that is being written one of `names`."""
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


def allowed(row: Row, but: TokenSet) -> Iterator[int]:
    """The tokens that a row allows, but for some."""
    row = row.copy()
    but.clear(row)
    for word in np.flatnonzero(row).tolist():
        bits = int(row[word]) & 0xFFFFFFFF
        while bits:
            yield word * 32 + (bits & -bits).bit_length() - 1
            bits &= bits - 1
