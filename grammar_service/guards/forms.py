"""How many different values may still follow where an item is being written, of arrays where none may come twice.

An item that is begun must not be forced to become one that is there already. So each state of an item has a number of ways to go on
that end in different values, and is left alone as long as that is more than the items that have passed through it. Numbers from ENOUGH on
are as good as endless: no answer has so many items.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

ENOUGH = 2**24
FREE = -1
"""The form of values of which nothing need be counted, and the place of those of which nothing is asked."""


class Slot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of an object, or an item of an array: its values' form; `tells`: the texts of its values where they are listed, the names of
    types for the others."""

    name: str
    form: int
    required: bool
    tells: tuple[str, ...]
    count: int


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Members or items in the order in which they are written; `rest[i]`: the ways to go on at slot i, the end among them."""

    slots: tuple[Slot, ...]
    rest: tuple[int, ...]

    def start_of(self, name: str, first: int) -> int | None:
        """The slot of that name from `first` on, None where a required one stands before it."""
        for index in range(first, len(self.slots)):
            slot = self.slots[index]
            if slot.name == name:
                return index
            if slot.required:
                return None
        return None


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A set of strings, as `StringSet` has it; `size`: how many."""

    moves: tuple[tuple[tuple[int, int], ...], ...]
    accepting: tuple[int, ...]
    size: int


class CountedStrings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That may run out: `listed` ones, sorted, or those of a `language`."""

    listed: tuple[str, ...] = ()
    language: Language | None = None

    @property
    def count(self) -> int:
        return len(self.listed) if self.language is None else self.language.size


class IntegerRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole numbers between two bounds, which are among them; None: there is no such bound."""

    least: int | None
    most: int | None

    @property
    def count(self) -> int:
        if self.least is None or self.most is None:
            return ENOUGH
        return min(ENOUGH, max(0, self.most - self.least + 1))

    def is_unbounded_from(self, text: str) -> bool:
        """Whether endlessly many begin so."""
        return (self.least if text.startswith("-") else self.most) is None and text.lstrip("-") != "0"

    def starting_with(self, text: str) -> Iterator[int]:
        """Those that begin so, if they do not go on."""
        sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text)
        least, most = (self.least, self.most) if sign > 0 else (_negative(self.most), _negative(self.least))
        if digits == "0":
            yield from (0,) if (self.least or 0) <= 0 <= (self.most or 0) else ()
        elif most is not None and (not digits or digits.isdecimal()) and len(digits) <= len(str(most)):
            for zeros in range(len(str(most))):
                first = int(digits or "1") * 10**zeros
                last = first + (1 if digits else 9) * 10**zeros - 1
                shared = range(first if least is None else max(first, least), min(last, most) + 1)
                yield from (sign * one for one in shared)


def _negative(bound: int | None) -> int | None:
    return None if bound is None else -bound


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a value: `endless` are the types of which a value that has begun can always become endlessly many others; `whole`: its numbers
    are. Of other types: `scalars`: the texts of listed values but strings; `strings`; `numbers`: whole ones, in ranges that do not meet;
    `objects` and `arrays`: those that have only so many."""

    endless: tuple[str, ...]
    whole: bool = False
    scalars: tuple[str, ...] = ()
    strings: CountedStrings | None = None
    numbers: tuple[IntegerRange, ...] = ()
    objects: tuple[Layout, ...] = ()
    arrays: tuple[Layout, ...] = ()

    @property
    def count(self) -> int:
        """Of its values."""
        if self.endless:
            return ENOUGH
        strings = 0 if self.strings is None else self.strings.count
        scalars = len(self.scalars) + strings + sum(some.count for some in self.numbers)
        return min(ENOUGH, scalars + ways(self.objects) + ways(self.arrays))


def ways(layouts: tuple[Layout, ...]) -> int:
    """To write values of some layouts, at least: of values that several have it is not known."""
    return max((layout.rest[0] for layout in layouts), default=0)


def times(left: int, right: int) -> int:
    """Capped."""
    return min(ENOUGH, left * right)
