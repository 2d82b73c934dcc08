"""The items that one open array has, where none may come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from decimal import Decimal
from functools import lru_cache

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.names import Names

REMEMBERED = 16
"""Lists of strings of which all beginnings are kept."""
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
    """The strings of an array that has no others, by all that they begin with; it knows which are left."""

    def __init__(self, tokens: NameTokens, listed: tuple[str, ...]) -> None:
        super().__init__(tokens)
        self._beginnings = _beginnings(listed)
        self._gone: Counter[bytes] = Counter()

    def add(self, name: bytes) -> None:
        super().add(name)
        self._gone.update(name[:length] for length in range(len(name) + 1))

    def drop(self, name: bytes) -> None:
        super().drop(name)
        self._gone.subtract(name[:length] for length in range(len(name) + 1))

    def left(self, begun: bytes) -> int:
        """How many that begin so are not there."""
        return self._beginnings[begun] - self._gone[begun]


@lru_cache(maxsize=REMEMBERED)
def _beginnings(listed: tuple[str, ...]) -> Counter[bytes]:
    """How many of the strings begin so."""
    return Counter(text[:length] for text in (item.encode("utf-8", "surrogatepass") for item in listed) for length in range(len(text) + 1))


class ItemSet:
    """Its strings and numbers; it can have no other items. `listed`: its strings, where they may run out."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.listed = None if items.listed is None else Listed(tokens, items.listed)
        self.strings = Names(tokens) if self.listed is None else self.listed
        self.numbers = Numbers()
        self._whole = items.whole

    def can_become(self, text: bytes, pending: bytes, added: Collection[bytes]) -> bool:
        """Whether a string that has begun so, perhaps with the start of an escape, can become one that is neither there nor `added`."""
        if self.listed is None:
            return True
        further = [text + byte for byte in _ESCAPED] if pending else [text]
        return any(self.listed.left(begun) > sum(other.startswith(begun) for other in added) for begun in further)

    def is_stuck(self, text: bytes, added: Iterable[bytes]) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if not self._whole or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
