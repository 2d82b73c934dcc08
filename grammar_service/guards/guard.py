"""The guard of one request: takes tokens away that would repeat the name of a member of an object."""

from __future__ import annotations

from grammar_service.guards.follower import START, Added, Cursor, Follower, Where
from grammar_service.guards.name_tokens import NameTokens, Row, forbid
from grammar_service.guards.names import Names


class Guard:
    """Follows the tokens that a matcher of JSON texts has accepted. Where it takes tokens away, others are left: the grammars that it is
    for have always another name."""

    def __init__(self, tokens: NameTokens) -> None:
        self._tokens = tokens
        self._follower = Follower(tokens)
        self._course: list[tuple[Cursor, Added]] = [(START, [])]

    def accept(self, token: int) -> bool:
        """Go on by a token; False (state unchanged) where it repeats a name."""
        added: Added = []
        after = self._follower.advance(self._course[-1][0], self._tokens.text(token), added)
        if after is None:
            return False
        for names, name in added:
            names.add(name)
        self._course.append((after, added))
        return True

    def rollback(self, n: int) -> None:
        """Take back the last n accepted tokens."""
        for _ in range(n):
            _, added = self._course.pop()
            for names, name in reversed(added):
                names.drop(name)

    def take_away(self, row: Row) -> None:
        """Forbid what would not be accepted: int32 [ceil(V/32)], of a matcher in the same state."""
        cursor = self._course[-1][0]
        names = cursor.open.names if cursor.open is not None else None
        if names and cursor.where is Where.NAME:
            self._keep_open(cursor, names, row)
        elif names and cursor.where is Where.BEFORE_NAME:
            for tokens in names.repeating_whole():
                tokens.clear(row)
        for token in self._tokens.several.among(row):
            if self._follower.advance(cursor, self._tokens.text(token), []) is None:
                forbid(row, token)

    def reset(self) -> None:
        self._course = [(START, [])]

    def _keep_open(self, cursor: Cursor, names: Names, row: Row) -> None:
        """A name that is being written must not become one of `names`."""
        begun = cursor.name
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
