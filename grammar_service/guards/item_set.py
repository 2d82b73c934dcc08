"""The items that one open array has, where none may come twice."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.names import Names


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


class ItemSet:
    """Its strings and numbers; of other items its grammar has none."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.strings = Names(tokens)
        self.numbers = Numbers()
        self._items = items

    def is_stuck(self, text: bytes, added: Iterable[bytes] = ()) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if self._items is not Items.WHOLE or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
