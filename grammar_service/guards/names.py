"""The names that one open object has, or the strings of an array where none may come twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.token_set import TokenSet


class Names:
    """Names in UTF-8. The tokens that would repeat one are looked up when it is added, so that no step costs more where names are many.
    `ends`: by the end of a name, the tokens that matter; those that begin with it and close it, where it is not said."""

    def __init__(self, tokens: NameTokens, ends: Mapping[bytes, TokenSet] | None = None) -> None:
        self._tokens = tokens
        self._by_end = tokens.closing if ends is None else ends
        self._held: set[bytes] = set()
        self._closing: defaultdict[bytes, list[TokenSet]] = defaultdict(list)
        self._opening: list[TokenSet] = []

    def __contains__(self, name: bytes) -> bool:
        return name in self._held

    def __bool__(self) -> bool:
        return bool(self._held)

    @staticmethod
    def is_same(name: bytes, other: bytes) -> bool:
        return name == other

    def repeating(self, begun: bytes) -> Sequence[TokenSet]:
        """The tokens that make one of them of a name that has begun so."""
        return self._closing.get(begun, ())

    def repeating_whole(self) -> Sequence[TokenSet]:
        """The tokens that hold one of them, quotes included."""
        return self._opening

    def add(self, name: bytes) -> None:
        self._held.add(name)
        for at in self._ends(name):
            self._closing[name[:at]].append(self._by_end[name[at:]])
        if name in self._tokens.opening:
            self._opening.append(self._tokens.opening[name])

    def drop(self, name: bytes) -> None:
        """The one that was added last."""
        self._held.remove(name)
        for at in self._ends(name):
            self._closing[name[:at]].pop()
        if name in self._tokens.opening:
            self._opening.pop()

    def _ends(self, name: bytes) -> list[int]:
        """Where ends of it begin that tokens close."""
        if not self._by_end:
            return []
        first = max(0, len(name) - self._tokens.longest)
        return [at for at in range(first, len(name) + 1) if name[at:] in self._by_end]
