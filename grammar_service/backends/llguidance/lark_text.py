"""Small pieces of Lark."""

from __future__ import annotations

import json


def literal(text: str) -> str:
    """A terminal of that text."""
    return json.dumps(text, ensure_ascii=False)


def repeated(part: str, comma: str, least: int, most: int | None, first: bool) -> str:
    """`least` to `most` (None: any number) of a part, each behind a comma, but for the `first` of all; nothing where that is all."""
    if not part or most == 0:
        return ""
    if not first:
        return f"({comma} {part}){_times(least, most)}"
    more = "" if most == 1 else f" ({comma} {part}){_times(max(0, least - 1), None if most is None else most - 1)}"
    return f"{part}{more}" if least else f"({part}{more})?"


def _times(least: int, most: int | None) -> str:
    return "*" if not least and most is None else f"{{{least},{'' if most is None else most}}}"
