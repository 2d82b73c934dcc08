"""From the bytes of a body to its JSON, in a time that depends on nothing but their number.

Scans at the speed of memory look for bodies that would cost far more than their size to build and to walk through: four mebibytes of
brackets are a million arrays.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np

from deployments.api.bounds.request_limits import check_counts
from deployments.config import LimitSettings
from deployments.constraints.json_shape import COSTLY, EXPONENT, LONG_DIGIT, LONG_EXPONENT, Shape, number_cost, shape_of
from deployments.errors import ApiError, bad_request

MAX_BODY_NESTING = 160  # far above any sane request, far below what recursive readers behind us stand
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Whole surrogate pairs, halves of one, and anything else. Until Python 3.11.5 one possessive pattern for all that is ahead of a half went
wrong (python/cpython issue 106052)."""
_PAIR = len(rb"\ud83d\ude00")
_PLACE = re.compile(r"\(byte (\d+)\)")
_DECODER = msgspec.json.Decoder()


def parse_body(raw: bytes, limits: LimitSettings) -> dict[str, Any]:
    """The JSON object in `raw`.

    Raises:
        ApiError: it is not JSON (RFC 8259), not an object, not Unicode, nested beyond all reason, or has too many values at all levels, or
            entries in a field.
    """
    try:
        _check_shape(raw, limits)
        body = _DECODER.decode(raw)
    except RecursionError:
        raise _too_deep() from None
    except msgspec.ValidationError as error:
        raise _out_of_range() if "out of range" in str(error) else _no_object() from None
    except ValueError as error:
        raise bad_request(_fault(raw, error), None, "invalid_json") from None
    if not isinstance(body, dict):
        raise _no_object()
    return body


def _fault(raw: bytes, error: ValueError) -> str:
    told = _PLACE.search(str(error))
    lone = _lone_half(raw, int(told[1]) if told else len(raw))
    if lone is not None:  # the library's message tells of a text that ends too soon
        return f"The request body is not Unicode: {raw[lone : lone + 6].decode()} at byte {lone} is one half of a surrogate pair."
    return f"The request body is not valid JSON: {error}"


def _lone_half(raw: bytes, place: int) -> int | None:
    """Where the half is that the library was looking for the other half of when it met a fault at `place`: two escapes before, at most."""
    begin = max(0, place - 2 * _PAIR)  # where it is inside of a pair, what is read wrongly is too far away to be meant
    begin -= (begin - len(raw[:begin].rstrip(b"\\"))) % 2  # not inside of an escape
    found = (escape.start() for escape in _ESCAPE.finditer(raw, begin, place + _PAIR) if escape["lone"])
    return next((start for start in found if place - _PAIR <= start <= place), None)


def _check_shape(raw: bytes, limits: LimitSettings) -> None:
    # Most bodies have few brackets, commas and colons even with those that stand in texts, and nobody looks where these begin and end.
    brackets = raw.count(b"[") + raw.count(b"{")
    at_most = Shape(raw.count(b","), brackets, raw.count(b":"), brackets, number_cost(np.frombuffer(raw, np.uint8)))
    if at_most.nesting <= MAX_BODY_NESTING and at_most.values <= limits.max_body_values:
        return
    shape = shape_of(raw)
    if shape.values > limits.max_body_values:
        message = f"The request has more than {limits.max_body_values} values; arrays, objects and members count as {COSTLY}, "
        message += f"numbers with exponents as {EXPONENT} or {LONG_EXPONENT}, and each digit beyond fifteen as {LONG_DIGIT}."
        raise bad_request(message, None, "request_too_large")
    if shape.nesting > MAX_BODY_NESTING:
        raise _too_deep()
    check_counts(raw, limits)


def _too_deep() -> ApiError:
    return bad_request(f"The request is nested more than {MAX_BODY_NESTING} levels deep.", None, "grammar_too_large")


def _out_of_range() -> ApiError:
    return bad_request("A number in the request is too large for any field.", None, "invalid_json")


def _no_object() -> ApiError:
    return bad_request("The request body must be a JSON object.", None, "invalid_json")
