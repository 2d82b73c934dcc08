"""The items that one open array has, where none may come twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from decimal import Decimal
from functools import lru_cache

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.names import Names
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.guards.tokens.token_set import GrowingSet

_NO_TOKENS = GrowingSet()
REMEMBERED = 16
"""Lists of strings of which all beginnings are kept, with the tokens of a vocabulary that lead there."""
_ESCAPED = tuple(bytes([byte]) for byte in (*b'"\\/', *range(0x20), *range(0x7F, 0x100)))
"""The first bytes of what may be written as an escape."""


class Numbers:
    """Numbers as they are written, without exponents: `1` and `1.0` are one."""

    def __init__(self) -> None:
        self._held: set[Decimal] = set()

    def __contains__(self, text: bytes) -> bool:
        return bool(self._held) and text[-1:].isdigit() and Decimal(text.decode()) in self._held

    @staticmethod
    def is_same(text: bytes, other: bytes) -> bool:
        return Decimal(text.decode()) == Decimal(other.decode())

    def add(self, text: bytes) -> None:
        self._held.add(Decimal(text.decode()))

    def drop(self, text: bytes) -> None:
        self._held.remove(Decimal(text.decode()))


class Listed(Names):
    """The strings of an array that has no others, by all that they begin with; it knows which are left, and which tokens lead to none."""

    def __init__(self, tokens: NameTokens, listed: tuple[str, ...]) -> None:
        super().__init__(tokens)
        self._listing = _listing(tokens, listed)
        self._gone: Counter[bytes] = Counter()
        self._nowhere: defaultdict[bytes, GrowingSet] = defaultdict(GrowingSet)

    def add(self, name: bytes) -> None:
        super().add(name)
        for length in range(len(name) + 1):
            begun = name[:length]
            self._gone[begun] += 1
            if self.left(begun) == 0:
                for before, token in self._listing.leading(begun):
                    self._nowhere[before].add(token)

    def drop(self, name: bytes) -> None:
        super().drop(name)
        for length in reversed(range(len(name) + 1)):
            begun = name[:length]
            if self.left(begun) == 0:
                for before, _ in self._listing.leading(begun):
                    self._nowhere[before].drop()
            self._gone[begun] -= 1

    def left(self, begun: bytes) -> int:
        """How many that begin so are not there."""
        return self._listing.beginnings[begun] - self._gone[begun]

    def leading_nowhere(self, begun: bytes) -> GrowingSet:
        """The tokens that go on with what all strings that begin so, and are there, go on with, and no other does."""
        return self._nowhere.get(begun, _NO_TOKENS)


class Listing:
    """Some strings. `beginnings`: how many of them begin so."""

    def __init__(self, tokens: NameTokens, listed: tuple[str, ...]) -> None:
        texts = [item.encode("utf-8", "surrogatepass") for item in listed]
        self.beginnings = Counter(text[:length] for text in texts for length in range(len(text) + 1))
        self._tokens = tokens
        self._known: dict[bytes, tuple[tuple[bytes, int], ...]] = {}

    def leading(self, begun: bytes) -> tuple[tuple[bytes, int], ...]:
        """The beginnings and tokens that come to this one."""
        if begun not in self._known:
            first = max(0, len(begun) - self._tokens.longest_plain)
            found = ((begun[:at], token) for at in range(first, len(begun)) for token in self._tokens.plain.get(begun[at:], ()))
            self._known[begun] = tuple(found)
        return self._known[begun]


@lru_cache(maxsize=REMEMBERED)
def _listing(tokens: NameTokens, listed: tuple[str, ...]) -> Listing:
    return Listing(tokens, listed)


class ItemSet:
    """Its strings and numbers; it can have no other items. `listed`: its strings, where they may run out; `is_whole`: its
    numbers are."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.listed = None if items.listed is None else Listed(tokens, items.listed)
        self.strings = Names(tokens) if self.listed is None else self.listed
        self.numbers = Numbers()
        self.is_whole = items.whole

    def can_become(self, text: bytes, pending: bytes, added: Collection[bytes]) -> bool:
        """Whether a string that has begun so, perhaps with the start of an escape, can become one that is neither there nor `added`."""
        if self.listed is None:
            return True
        further = [text + byte for byte in _ESCAPED] if pending else [text]
        return any(self.listed.left(begun) > sum(other.startswith(begun) for other in added) for begun in further)

    def is_stuck(self, text: bytes, added: Iterable[bytes]) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if not self.is_whole or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
