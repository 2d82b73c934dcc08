"""Constraints of a parsed body as JSON text again."""

from __future__ import annotations

import json
from typing import Any

AT_ONCE = 4096
"""Values that the C encoder writes in one call, in 3 ms at most: it holds the GIL meanwhile, also beside the event loop."""


def write_json(value: Any) -> str:
    """As `json.dumps` writes it. A large value is written in Python, which other threads interrupt; that takes ten times as long."""
    return json.dumps(value) if has_at_most(value, AT_ONCE) else "".join(json.JSONEncoder().iterencode(value))


def has_at_most(value: Any, most: int) -> bool:
    return number_of_values(value, most) <= most


def number_of_values(value: Any, most: int) -> int:
    """Of all levels, without recursion; something above `most` where they are more, of which no more than it must are counted."""
    counted, left = 0, [value]
    while left:
        if (counted := counted + 1) + len(left) > most:
            return most + 1
        one = left.pop()
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return counted
