"""Bodies are read or refused in a time that their size bounds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.api.bounds.body import MAX_BODY_NESTING, parse_body
from deployments.api.call_facts import CallFacts
from deployments.api.protocol import RequestReader
from deployments.config import HttpSettings, LimitSettings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.json_shape import COSTLY, EXPONENT, LONG_DIGIT, LONG_EXPONENT, MOST_VALUES_IN_TEXT, Shape, shape_of
from deployments.errors import ApiError
from model_service.messages import Endpoint
from tests.hostile_bodies import HOSTILE_BODIES

LIMITS = LimitSettings()
ALLOWED = int(HttpSettings().max_body_mib * 2**20)
NUMBERS = json.dumps([number / 7 for number in range(ALLOWED // 20)])
MOST_TO_PARSE = 2
"""Times what `json.loads` takes for as many bytes of ordinary numbers: others' requests wait for it."""
MOST_TO_READ = 5
"""In a thread beside the event loop."""
TRIES = 3
OLD_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
READER = RequestReader("tiny", "hermes", ConstraintDefaults())
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def values(value: object) -> int:
    """Members and items, at all levels."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) + sum(map(values, inner))


def old_shape(raw: bytes) -> Shape:
    """By the way that it was found before: slower, and plain to see."""
    bare = OLD_STRING.sub(b"", raw)
    deepest = depth = 0
    for byte in bare:
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    exponents, of_three = (len(re.findall(pattern, bare)) for pattern in (rb"[eE][-+]?\d", rb"[eE][-+]?\d{3}"))
    digits = sum(max(0, len(row) - 15) for row in re.findall(rb"[0-9.]+", bare))
    number_cost = EXPONENT * exponents + (LONG_EXPONENT - EXPONENT) * of_three + LONG_DIGIT * digits
    return Shape(bare.count(b","), bare.count(b"[") + bare.count(b"{"), bare.count(b":"), deepest, number_cost)


def processor_time(call: Callable[[Any], object], of: Callable[[], object]) -> float:
    """Seconds of `call` with what a call of `of` gives, whether it refuses that or not: the least, as the machine has other work."""

    def took() -> float:
        argument, started = of(), time.process_time()
        with suppress(ApiError):
            call(argument)
        return time.process_time() - started

    return min(took() for _ in range(TRIES))


@pytest.fixture(scope="module")
def numbers_s() -> float:
    """Of `json.loads`, for a body of numbers as large as is allowed."""
    return processor_time(json.loads, lambda: NUMBERS) * ALLOWED / len(NUMBERS)


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_a_hostile_body_is_parsed_or_refused_before_others_notice(name: str, numbers_s: float) -> None:
    raw = HOSTILE_BODIES[name]()
    took = processor_time(lambda body: parse_body(body, LIMITS), lambda: raw)
    assert took < MOST_TO_PARSE * numbers_s * max(1, len(raw) / ALLOWED)


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_a_hostile_body_is_read_or_refused_in_time(name: str, numbers_s: float) -> None:
    raw = HOSTILE_BODIES[name]()

    def read(body: dict[str, Any]) -> None:
        CallFacts(2048).prompt(READER.read(Endpoint.CHAT, body).body)

    with suppress(ApiError):  # parsed anew for each: reading takes fields out of it
        assert processor_time(read, lambda: parse_body(raw, LIMITS)) < MOST_TO_READ * numbers_s


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_the_shape_of_a_hostile_body_is_what_it_was(name: str) -> None:
    raw = HOSTILE_BODIES[name]()[:ALLOWED]
    assert shape_of(raw) == old_shape(raw)


@given(NESTED, st.booleans(), st.integers(0, 40))
def test_the_shape_of_any_json_is_what_it_was_wherever_it_ends(value: object, escaped: bool, missing: int) -> None:
    raw = json.dumps(value, ensure_ascii=escaped).encode()
    raw = raw[: len(raw) - missing] if missing < len(raw) else raw
    assert shape_of(raw) == old_shape(raw)


@pytest.mark.parametrize("field", ["messages", "tools", "stop", "logit_bias"])
def test_too_many_entries_are_refused_before_any_of_them_is_built(field: str) -> None:
    entries = {str(number): [] for number in range(3000)} if field == "logit_bias" else [[]] * 3000
    with pytest.raises(ApiError) as caught:
        parse_body(json.dumps({field: entries}).encode(), LIMITS)
    assert (caught.value.code, caught.value.param) == ("over_limit", field)


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
        b'{"x":' + b"[" * 100_000,
        b"[" + b"[]," * 1000 + b"0]",
        b'{"a":' * 500 + b"1" + b"}" * 500,
    ],
)
def test_what_is_no_json_object_is_a_400(raw: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(raw, LIMITS)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("raw", "escape", "at"),
    [
        (rb'{"x": "\ud800"}', r"\ud800", 7),
        (rb'{"x": "a\uD83D\u0041"}', r"\uD83D", 8),
        (rb'{"x": "\udc00abc"}', r"\udc00", 7),
        (rb'{"x": "\ud83dab"}', r"\ud83d", 7),
        (rb'{"x": "\ud83d\ude00\\\ud83d\n"}', r"\ud83d", 21),
        (rb'{"x": "\ud83d\ude00\ud83d\ude00\ud83d"}', r"\ud83d", 31),
        (rb'{"\ud83d\ude00\\ud800": "\n\ud800\ud800\udc00"}', r"\ud800", 27),
    ],
)
def test_half_of_a_surrogate_pair_is_told_with_its_place(raw: bytes, escape: str, at: int) -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(raw, LIMITS)
    assert caught.value.message == f"The request body is not Unicode: {escape} at byte {at} is one half of a surrogate pair."
    assert raw[at:].startswith(escape.encode())


def test_a_body_that_ends_too_soon_is_told_as_that() -> None:
    for raw in (rb'{"x": "\ud8', rb'{"x": "\ud83d\ude00', rb'{"x": "\\ud800', rb'{"x": "\ud83d\ude00\ud83d\ude00'):
        with pytest.raises(ApiError, match="valid JSON"):
            parse_body(raw, LIMITS)


def test_brackets_and_commas_inside_strings_are_neither_nesting_nor_values() -> None:
    text = '[{,\\"' * 1000
    assert parse_body(json.dumps({"x": text}).encode(), LimitSettings(max_body_values=10)) == {"x": text}


@given(NESTED, st.booleans())
def test_what_json_writes_is_read_as_it_was_and_its_values_counted(value: object, escaped: bool) -> None:
    body = {"value": value}
    raw = json.dumps(body, ensure_ascii=escaped).encode()
    most = COSTLY * (2 + 2 * values(body)) + old_shape(raw).number_cost
    assert parse_body(raw, LimitSettings(max_body_values=most)) == body
    if values(body) > 2:
        with pytest.raises(ApiError, match="values"):
            parse_body(raw, LimitSettings(max_body_values=(values(body) - 1) // 2))


def test_what_is_costly_to_build_counts_as_several_values() -> None:
    items: list[Any] = [0] * 200
    lists: list[Any] = [[]] * 200
    members = {str(number): 0 for number in range(200)}
    limits = LimitSettings(max_body_values=300)
    assert parse_body(json.dumps({"x": items}).encode(), limits)
    for costly in (lists, members):
        with pytest.raises(ApiError, match="count as 4"):
            parse_body(json.dumps({"x": costly}).encode(), limits)


def test_nesting_is_counted_exactly() -> None:
    for opening, closing in ((b"[", b"]"), (b'{"x":', b"}")):
        many = b'"y":[' + b"[]," * MAX_BODY_NESTING + b"0]"
        deepest = b'{"x":' + opening * (MAX_BODY_NESTING - 1) + b"0" + closing * (MAX_BODY_NESTING - 1) + b"," + many + b"}"
        assert parse_body(deepest, LIMITS)["y"][-1] == 0
        with pytest.raises(ApiError, match="nested"):
            parse_body(b'{"deeper":' + deepest + b"}", LIMITS)


@pytest.mark.parametrize("number", [b"1" * 5000, b"1e400"])
def test_a_number_that_nothing_can_hold_is_refused_as_one(number: bytes) -> None:
    with pytest.raises(ApiError, match="too large for any field"):
        parse_body(b'{"n": ' + number + b"}", LimitSettings())


@pytest.mark.parametrize(
    "text",
    [
        b"1e308",
        b"9" * 15,
        b"[0." + b"0" * 20,
        b"9" * 99,
        b"[1E+308",
        b"1.5e-0310,2e99",
        b"e12",
        b"ee123",
        b"e+",
        b"",
        b"e",
        b'"e123"e123',
        b"1e308e-308",
    ],
)
def test_numbers_that_cost_more_are_counted(text: bytes) -> None:
    assert shape_of(text).number_cost == old_shape(text).number_cost


def test_extreme_numbers_cost_what_they_take() -> None:
    with pytest.raises(ApiError, match="exponents"):
        parse_body(b'{"metadata":[' + b",".join([b"1e-310"] * 2600) + b"]}", LIMITS)
    assert parse_body(b'{"metadata":[' + b",".join([b"1e-10"] * 2600) + b"]}", LIMITS)


SLOW_TEXT = '{"enum":[' + ",".join(["9e-300"] * (MOST_VALUES_IN_TEXT // 100)) + "]}"
CALL = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": SLOW_TEXT}}]}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [CALL]}, "messages"),
        ({"messages": [{"role": "user", "content": "a"}], "tools": [TOOL], "guided_json": SLOW_TEXT}, "guided_json"),
    ],
)
def test_json_in_a_text_is_bounded_as_well(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, body)
    assert (caught.value.code, caught.value.param) == ("over_limit", field)


def test_a_long_text_in_arguments_is_no_value() -> None:
    arguments = json.dumps({"file": "a, [b]: {c}, 9e300\n" * 50_000})
    READER.read(Endpoint.CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}]})
