"""How many different values may still follow where an item is being written, of arrays where none may come twice.

An item that is begun must not be forced to become one that is there already. So each state of an item has a number of ways to go on
that end in different values, and is left alone as long as that is more than the items that have passed through it. Numbers from ENOUGH on
are as good as endless: no answer has so many items.
"""

from __future__ import annotations

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


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a value: `endless` are the types of which a value that has begun can always become endlessly many others; `whole`: its numbers
    are; `scalars`: the texts of listed values of other types; `objects` and `arrays`: those that have only so many."""

    endless: tuple[str, ...]
    whole: bool = False
    scalars: tuple[str, ...] = ()
    objects: tuple[Layout, ...] = ()
    arrays: tuple[Layout, ...] = ()

    @property
    def count(self) -> int:
        """Of its values."""
        if self.endless:
            return ENOUGH
        return min(ENOUGH, len(self.scalars) + ways(self.objects) + ways(self.arrays))


def ways(layouts: tuple[Layout, ...]) -> int:
    """To write values of some layouts, at least: of values that several have it is not known."""
    return max((layout.rest[0] for layout in layouts), default=0)


def times(left: int, right: int) -> int:
    """Capped."""
    return min(ENOUGH, left * right)
