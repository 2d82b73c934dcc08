"""Finds the leaves of a JSON text, and where each is written. The text may be cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from grammar_service.schema.pointer import join

MOST_LEAVES = 1000
LONGEST_POINTER = 1000
"""Characters. Leaves with longer pointers are left out."""
MOST_PARTS = 8000
"""Brackets, commas, names and values that are scanned, in 10 ms at most."""
_PARTS = re.compile(r'("(?:[^"\\]|\\.)*+\\?"?)|([{}\[\],:])|([^\s{}\[\],:"]+)', re.DOTALL)


class Leaf(NamedTuple):
    """Characters `start` to `end` (exclusive). A number includes the character that ends it, which the model chose as well."""

    pointer: str
    start: int
    end: int


@dataclass(slots=True)
class _Container:
    """An open object or array. `pointer` is None if it is too long. `key`: name of the current member; `index`: of the current item."""

    pointer: str | None
    is_object: bool
    start: int
    key: str | None = None
    index: int = 0
    is_empty: bool = True

    def child_pointer(self) -> str | None:
        """The pointer of the current value."""
        if self.pointer is None:
            return None
        pointer = join(self.pointer, (self.key or "") if self.is_object else self.index)
        return pointer if len(pointer) <= LONGEST_POINTER else None


def find_leaves(text: str) -> list[Leaf]:
    """Texts, numbers, booleans, nulls and empty containers, at most MOST_LEAVES. A text that begins as neither an object nor an array is
    one leaf."""
    if not text.lstrip().startswith(("{", "[")):
        return [Leaf("", 0, len(text) + 1)]
    return list(islice(_scan(text), MOST_LEAVES))


def _scan(text: str) -> Iterator[Leaf]:
    open_ = list[_Container]()
    for part in islice(_PARTS.finditer(text), MOST_PARTS):
        string, mark, literal = part.groups()
        inner = open_[-1] if open_ else None
        if mark and mark in "}]" and inner is not None:
            open_.pop()
            if inner.is_empty and inner.pointer is not None:
                yield Leaf(inner.pointer, inner.start, part.end())
        elif mark == "," and inner is not None:
            inner.index, inner.key = inner.index + 1, None
        elif mark != ":":
            pointer = inner.child_pointer() if inner else ""
            if inner is not None:
                inner.is_empty = False
            if mark:
                open_.append(_Container(pointer, mark == "{", part.start()))
            elif inner is not None and inner.is_object and inner.key is None:
                inner.key = _key(string or literal)
            elif pointer is not None:
                yield Leaf(pointer, part.start(), part.end() + bool(literal))
        if not open_:
            return


def _key(string: str) -> str:
    try:
        return str(json.loads(string))
    except ValueError:  # the text is cut off here
        return string[1:]
