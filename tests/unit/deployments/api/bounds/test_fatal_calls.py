"""A request that engines have ended over rests for a while."""

from __future__ import annotations

from typing import Any

from deployments.api.bounds.fatal_calls import REMEMBERED, REST_S, SAME_S, FatalCalls
from deployments.api.protocol import ParsedRequest
from deployments.errors import ApiError
from model_service.messages import Endpoint
from tests.unit.router.clock import Clock


def request(name: str = "one", **fields: Any) -> ParsedRequest:
    return ParsedRequest(Endpoint.CHAT, name, {"prompt": "x", "seed": 10**30, **fields}, None)


def is_refused(calls: FatalCalls, asked: ParsedRequest) -> bool:
    try:
        calls.check(asked)
    except ApiError as error:
        return error.code == "request_ends_engines"
    return False


def test_two_engines_are_enough_whatever_the_request_is_called() -> None:
    clock = Clock()
    calls = FatalCalls(clock)
    for replica in "ab":
        assert not is_refused(calls, request())
        calls.ended(request(), replica)
    assert is_refused(calls, request("another name"))
    assert not is_refused(calls, request(seed=2))
    clock.now += REST_S
    assert not is_refused(calls, request())


def test_requests_alike_that_one_engine_had_are_not_to_blame_for_two() -> None:
    clock = Clock()
    calls = FatalCalls(clock)
    for _ in range(10):
        calls.ended(request(), "a")
    assert not is_refused(calls, request())
    clock.now += SAME_S
    calls.ended(request(), "a")
    assert is_refused(calls, request()), "the next engine of the same replica"


def test_what_ends_now_and_then_is_no_fault_of_the_request() -> None:
    clock = Clock()
    calls = FatalCalls(clock)
    for _ in range(5):
        calls.ended(request(), "a")
        assert not is_refused(calls, request())
        clock.now += REST_S


def test_only_the_latest_are_remembered() -> None:
    calls = FatalCalls(Clock())
    for replica in "ab":
        calls.ended(request(), replica)
    for number in range(REMEMBERED):
        calls.ended(request(number=number), "a")
    assert not is_refused(calls, request())
    calls.ended(request(number=REMEMBERED - 1), "b")
    assert is_refused(calls, request(number=REMEMBERED - 1))
