"""From the bytes of a body to its JSON, in a time that depends on nothing but their number.

A scan at the speed of memory looks for bodies that would cost far more than their size to build and to walk through: four mebibytes of
brackets are a million arrays.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from deployments.errors import ApiError, bad_request

MAX_BODY_NESTING = 160  # far above any sane request, far below what recursive readers behind us stand
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Whole surrogate pairs, halves of one, and anything else. Until Python 3.11.5 one possessive pattern for all that is ahead of a half went
wrong (python/cpython issue 106052)."""
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENING = frozenset(b"[{")
_DECODER = msgspec.json.Decoder()


def parse_body(raw: bytes, most_values: int) -> dict[str, Any]:
    """The JSON object in `raw`, with at most so many values (members and items, at all levels).

    Raises:
        ApiError: it is not JSON (RFC 8259), not an object, not Unicode, nested beyond all reason, or has too many values.
    """
    _check_shape(raw, most_values)
    try:
        body = _DECODER.decode(raw)
    except ValueError as error:
        raise bad_request(_fault(raw, error), None, "invalid_json") from None
    if not isinstance(body, dict):
        raise bad_request("The request body must be a JSON object.", None, "invalid_json")
    return body


def _fault(raw: bytes, error: ValueError) -> str:
    lone = next((escape for escape in _ESCAPE.finditer(raw) if escape["lone"]), None)
    if lone is not None:  # the library's message tells of a text that ends too soon
        return f"The request body is not Unicode: {lone[0].decode()} at byte {lone.start()} is one half of a surrogate pair."
    return f"The request body is not valid JSON: {error}"


def _check_shape(raw: bytes, most_values: int) -> None:
    # Most bodies have few brackets and commas even with those that stand in texts, and nobody looks where these begin and end.
    if _brackets(raw) <= MAX_BODY_NESTING and _values(raw) <= most_values:
        return
    bare = _STRING.sub(b"", raw)
    if _values(bare) > most_values:
        raise _too_many(most_values)
    if _brackets(bare) > MAX_BODY_NESTING and _nesting(bare) > MAX_BODY_NESTING:
        raise bad_request(f"The request is nested more than {MAX_BODY_NESTING} levels deep.", None, "grammar_too_large")


def _brackets(raw: bytes) -> int:
    return raw.count(b"[") + raw.count(b"{")


def _values(raw: bytes) -> int:
    """No fewer than there are: each but the first of its object or array has a comma in front, and each of those a bracket."""
    return raw.count(b",") + _brackets(raw)


def _nesting(bare: bytes) -> int:
    """The deepest level in a text without strings."""
    deepest = depth = 0
    for bracket in bare.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in _OPENING else -1
        deepest = max(deepest, depth)
    return deepest


def _too_many(most: int) -> ApiError:
    return bad_request(f"The request has more than {most} values.", None, "request_too_large")
