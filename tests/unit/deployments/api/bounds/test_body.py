"""Bodies are read or refused in a time that their size bounds."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.api.bounds.body import MAX_BODY_NESTING, parse_body
from deployments.api.call_facts import CallFacts
from deployments.api.protocol import RequestReader
from deployments.config import LimitSettings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.errors import ApiError
from model_service.messages import Endpoint
from tests.hostile_bodies import HOSTILE_BODIES

MOST = LimitSettings().max_body_values
LONGEST_S = 1.0
READER = RequestReader("tiny", "hermes", ConstraintDefaults())
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def values(value: object) -> int:
    """Members and items, at all levels."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) + sum(map(values, inner))


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_a_hostile_body_is_read_or_refused_in_time(name: str) -> None:
    raw = HOSTILE_BODIES[name]()
    started = time.process_time()
    with suppress(ApiError):
        CallFacts(2048).prompt(READER.read(Endpoint.CHAT, parse_body(raw, MOST)).body)
    assert time.process_time() - started < LONGEST_S


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"\xff{}",
        b'{"x": "\xff"}',
        b'{"x": NaN}',
        b'{"x": 1e999}',
        b'{"x": "\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
    ],
)
def test_what_is_no_json_object_is_a_400(raw: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(raw, MOST)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("raw", "escape", "at"),
    [
        (rb'{"x": "\ud800"}', r"\ud800", 7),
        (rb'{"x": "a\uD83D\u0041"}', r"\uD83D", 8),
        (rb'{"x": "\udc00abc"}', r"\udc00", 7),
        (rb'{"\ud83d\ude00\\ud800": "\n\ud800\ud800\udc00"}', r"\ud800", 27),
    ],
)
def test_half_of_a_surrogate_pair_is_told_with_its_place(raw: bytes, escape: str, at: int) -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(raw, MOST)
    assert caught.value.message == f"The request body is not Unicode: {escape} at byte {at} is one half of a surrogate pair."
    assert raw[at:].startswith(escape.encode())


def test_a_body_that_ends_too_soon_is_told_as_that() -> None:
    for raw in (rb'{"x": "\ud8', rb'{"x": "\ud83d\ude00', rb'{"x": "\\ud800'):
        with pytest.raises(ApiError, match="valid JSON"):
            parse_body(raw, MOST)


def test_brackets_and_commas_inside_strings_are_neither_nesting_nor_values() -> None:
    text = '[{,\\"' * 1000
    assert parse_body(json.dumps({"x": text}).encode(), 10) == {"x": text}


@given(NESTED, st.booleans())
def test_what_json_writes_is_read_as_it_was_and_its_values_counted(value: object, escaped: bool) -> None:
    body = {"value": value}
    raw = json.dumps(body, ensure_ascii=escaped).encode()
    assert parse_body(raw, 2 * values(body)) == body
    if values(body) > 1:
        with pytest.raises(ApiError, match="values"):
            parse_body(raw, (values(body) - 1) // 2)


def test_nesting_is_counted_exactly() -> None:
    for opening, closing in ((b"[", b"]"), (b'{"x":', b"}")):
        many = b'"y":[' + b"[]," * MAX_BODY_NESTING + b"0]"
        deepest = b'{"x":' + opening * (MAX_BODY_NESTING - 1) + b"0" + closing * (MAX_BODY_NESTING - 1) + b"," + many + b"}"
        assert parse_body(deepest, MOST)["y"][-1] == 0
        with pytest.raises(ApiError, match="nested"):
            parse_body(b'{"deeper":' + deepest + b"}", MOST)
