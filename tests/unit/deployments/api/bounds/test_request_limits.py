"""Requests that ask for too much are refused by the field that does."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.bounds.request_limits import check_limits
from deployments.config import LimitSettings
from deployments.errors import ApiError
from model_service.messages import Endpoint

CHAT, COMPLETION = Endpoint.CHAT, Endpoint.COMPLETION
LIMITS = LimitSettings(max_sequences=4, max_tokens=100, max_logprobs=2, max_logit_bias=2, max_stop=2, max_messages=2, max_tools=2)
WITHIN: dict[str, Any] = {
    "messages": [{}, {}],
    "tools": [{}, {}],
    "max_tokens": 100,
    "max_completion_tokens": 100.0,
    "logprobs": 2,
    "top_logprobs": 2,
    "prompt_logprobs": 2,
    "logit_bias": {"1": 1, "2": 1},
    "stop": ["a", "b"],
    "stop_token_ids": [1, 2],
    "bad_words": ["a", "b"],
    "allowed_token_ids": [1, 2],
    "logprob_token_ids": [1, 2],
    "n": 4,
}
BEYOND: dict[str, Any] = {
    "messages": [{}] * 3,
    "tools": [{}] * 3,
    "max_tokens": 101,
    "max_completion_tokens": 101.0,
    "logprobs": 3,
    "top_logprobs": -1,
    "prompt_logprobs": 3,
    "logit_bias": dict.fromkeys("123", 1),
    "stop": ["a"] * 3,
    "stop_token_ids": [1] * 3,
    "bad_words": ["a"] * 3,
    "allowed_token_ids": [1] * 3,
    "logprob_token_ids": [1] * 3,
    "n": 5,
}


@pytest.mark.parametrize("field", WITHIN)
def test_a_field_may_have_what_its_limit_allows_and_no_more(field: str) -> None:
    check_limits(CHAT, {field: WITHIN[field]}, LIMITS)
    check_limits(CHAT, {field: None}, LIMITS)
    with pytest.raises(ApiError) as caught:
        check_limits(CHAT, {field: BEYOND[field]}, LIMITS)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "over_limit", field)


@pytest.mark.parametrize("field", ["n", "max_tokens", "prompt_logprobs"])
@pytest.mark.parametrize("value", ["1000", 1.5, True, [1000], float("inf"), float("nan")])
def test_what_is_no_number_is_not_left_to_the_engine_that_would_read_it_as_one(field: str, value: Any) -> None:
    if (field, value) == ("prompt_logprobs", True):
        return  # as in chat requests' `logprobs`
    with pytest.raises(ApiError) as caught:
        check_limits(CHAT, {field: value}, LIMITS)
    assert caught.value.param == field


@pytest.mark.parametrize(
    ("endpoint", "body", "sequences"),
    [
        (CHAT, {}, 1),
        (CHAT, {"n": 3, "prompt": ["a", "b"]}, 3),
        (CHAT, {"n": 0}, 1),
        (COMPLETION, {"prompt": "text"}, 1),
        (COMPLETION, {"prompt": [1, 2, 3, 4, 5]}, 1),
        (COMPLETION, {"prompt": ["a", "b"], "n": 2}, 4),
        (COMPLETION, {"prompt": [[1, 2], [3]]}, 2),
        (COMPLETION, {"prompt": [], "n": 2}, 2),
        (COMPLETION, {"prompt_embeds": ["x", "y"], "prompt": "z"}, 3),
    ],
)
def test_each_answer_to_each_prompt_is_a_sequence(endpoint: Endpoint, body: dict[str, Any], sequences: int) -> None:
    assert check_limits(endpoint, body, LIMITS) == sequences


@pytest.mark.parametrize(("body", "field"), [({"prompt": ["a"] * 5}, "prompt"), ({"prompt": ["a"] * 2, "n": 3}, "n")])
def test_too_many_sequences_are_refused_by_the_field_that_asks_for_them(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_limits(COMPLETION, body, LIMITS)
    assert (caught.value.code, caught.value.param) == ("over_limit", field)


def test_the_defaults_refuse_what_would_keep_an_engine_for_minutes() -> None:
    with pytest.raises(ApiError, match="2000"):
        check_limits(CHAT, {"n": 2000}, LimitSettings())
    with pytest.raises(ApiError, match="tools"):
        check_limits(CHAT, {"tools": [{}] * 513}, LimitSettings())
