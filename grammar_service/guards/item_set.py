"""The items that one open array has, where none may come twice."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from decimal import Decimal

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.names import Names

_ESCAPED = re.compile(rb'["\\/\x00-\x1f\x7f-\xff]')
"""What may be written as an escape."""


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
    """Its strings and numbers; it can have no other items."""

    def __init__(self, tokens: NameTokens, items: Items) -> None:
        self.strings = Names(tokens)
        self.numbers = Numbers()
        self._whole = items.whole
        self._listed = items.listed

    @property
    def is_listed(self) -> bool:
        """Whether it may run out of items."""
        return self._listed is not None

    def can_become(self, text: bytes, pending: bytes, added: Iterable[bytes]) -> bool:
        """Whether a string that has begun so, perhaps with the start of an escape, can become one that is neither there nor `added`."""
        if self._listed is None:
            return True
        gone = set(added)
        begun = text.decode("utf-8", "ignore")
        for listed in self._listed[bisect_left(self._listed, begun) :]:
            if not listed.startswith(begun):
                break
            value = listed.encode("utf-8", "surrogatepass")
            fits = value.startswith(text) and (not pending or _ESCAPED.match(value, len(text)))
            if fits and value not in self.strings and value not in gone:
                return True
        return False

    def is_stuck(self, text: bytes, added: Iterable[bytes]) -> bool:
        """Whether a number that has begun so can only become one that is there, or `added`: nothing follows a whole zero."""
        if not self._whole or text not in (b"0", b"-0"):
            return False
        return text in self.numbers or any(self.numbers.is_same(text, other) for other in added)
