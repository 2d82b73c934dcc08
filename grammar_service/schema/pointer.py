"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from urllib.parse import unquote

from grammar_service.schema.json_text import Json


def join(pointer: str, *steps: str | int) -> str:
    """The pointer extended by steps."""
    for step in steps:
        pointer = f"{pointer}/{step.replace('~', '~0').replace('/', '~1')}" if isinstance(step, str) else f"{pointer}/{step}"
    return pointer


def of_fragment(fragment: str) -> str:
    """The pointer in a URI fragment (without its '#'): percent-decoded."""
    return unquote(fragment, errors="strict")


def resolve(document: Json, pointer: str) -> Json:
    """The value at a pointer.

    Raises:
        LookupError: nothing is there.
    """
    value = document
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 9:
            value = value[int(step)]
        else:
            raise LookupError(pointer)
    return value
