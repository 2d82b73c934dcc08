"""A request is bounded in all that it asks for together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.api.bounds.request_limits import MOST_ECHOED, check_counts, check_echoed_prompts, longest_answer, sequences_of
from deployments.config import LimitSettings
from deployments.errors import ApiError
from model_service.messages import Endpoint

CHAT, COMPLETION = Endpoint.CHAT, Endpoint.COMPLETION
LIMITS = LimitSettings(max_sequences=4, max_logprob_values=1200, max_stop=2)


@pytest.mark.parametrize(
    ("endpoint", "body", "sequences"),
    [
        (CHAT, {}, 1),
        (CHAT, {"n": 3}, 3),
        (COMPLETION, {"prompt": "text"}, 1),
        (COMPLETION, {"prompt": [1, 2, 3, 4, 5]}, 1),
        (COMPLETION, {"prompt": ["a", "b"], "n": 2}, 4),
        (COMPLETION, {"prompt": [[1, 2], [3]]}, 2),
        (COMPLETION, {"prompt": [], "n": 2}, 2),
        (COMPLETION, {"prompt_embeds": ["x", "y"], "prompt": "z"}, 3),
    ],
)
def test_each_answer_to_each_prompt_is_a_sequence(endpoint: Endpoint, body: dict[str, Any], sequences: int) -> None:
    assert sequences_of(endpoint, body, LIMITS) == sequences


@pytest.mark.parametrize(("body", "field"), [({"prompt": ["a"] * 5}, "prompt"), ({"prompt": ["a"] * 2, "n": 3}, "n")])
def test_too_many_sequences_are_refused_by_the_field_that_asks_for_them(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as caught:
        sequences_of(COMPLETION, body, LIMITS)
    assert (caught.value.code, caught.value.param) == ("over_limit", field)


@pytest.mark.parametrize(
    ("endpoint", "body", "sequences", "most"),
    [
        (CHAT, {"top_logprobs": 5}, 1, None),
        (CHAT, {"logprobs": True}, 1, 1200),
        (CHAT, {"logprobs": True, "top_logprobs": 5, "max_tokens": 100}, 2, 100),
        (CHAT, {"logprobs": True, "logprob_token_ids": [1, 2]}, 1, 400),
        (COMPLETION, {"max_tokens": 100}, 1, None),
        (COMPLETION, {"logprobs": 0, "max_tokens": 300}, 4, 300),
    ],
)
def test_an_answer_has_as_many_tokens_as_its_log_probabilities_leave_it(
    endpoint: Endpoint, body: dict[str, Any], sequences: int, most: int | None
) -> None:
    assert longest_answer(endpoint, body, sequences, LIMITS) == most
    if most is not None:
        with pytest.raises(ApiError) as caught:
            longest_answer(endpoint, {**body, "max_tokens": most + 1}, sequences, LIMITS)
        assert (caught.value.code, caught.value.param) == ("over_limit", "max_tokens")


@pytest.mark.parametrize(
    ("endpoint", "body", "field", "beyond"),
    [
        (COMPLETION, {"prompt_logprobs": 0}, "prompt_logprobs", {"prompt_logprobs": 2}),
        (COMPLETION, {"echo": True, "logprobs": 1}, "echo", {"logprobs": 2}),
        (CHAT, {"echo": True}, "echo", {"logprobs": True, "top_logprobs": 2}),  # vLLM computes them for what is not even told
    ],
)
def test_log_probabilities_of_prompts_are_off_until_a_setting_allows_so_many(
    endpoint: Endpoint, body: dict[str, Any], field: str, beyond: dict[str, Any]
) -> None:
    with pytest.raises(ApiError) as caught:
        longest_answer(endpoint, body, 1, LIMITS)
    assert (caught.value.status, caught.value.param) == (400, field)
    assert "limits.max_prompt_logprobs" in caught.value.message
    allowing = LIMITS.model_copy(update={"max_prompt_logprobs": 1})
    longest_answer(endpoint, body, 1, allowing)
    with pytest.raises(ApiError) as caught:
        longest_answer(endpoint, {**body, **beyond}, 1, allowing)
    assert (caught.value.code, caught.value.param) == ("over_limit", field)


@pytest.mark.parametrize("name", ["echo", "return_token_ids", "return_prompt_text"])
def test_a_long_prompt_is_echoed_in_few_answers(name: str) -> None:
    text, tokens = "a" * (MOST_ECHOED // 3 - 20), [1] * (MOST_ECHOED // 6 - 20)
    for fitting in ({"prompt": text, "n": 2}, {"prompt": tokens, "n": 2}, {"prompt": text * 9}):
        check_echoed_prompts({**fitting, name: True})
    check_echoed_prompts({"prompt": text * 9, "n": 3})
    for prompt in ({"prompt": text}, {"prompt": [tokens, tokens]}, {"messages": [{"role": "user", "content": [text]}]}):
        with pytest.raises(ApiError) as caught:
            check_echoed_prompts({**prompt, "n": 4, name: True})
        assert (caught.value.code, caught.value.param) == ("over_limit", "n")


def test_entries_are_counted_before_they_are_built() -> None:
    check_counts(json.dumps({"stop": ["a"] * 2, "n": [1] * 5}).encode(), LIMITS)
    with pytest.raises(ApiError) as caught:
        check_counts(json.dumps({"stop": ["a"] * 3}).encode(), LIMITS)
    assert (caught.value.code, caught.value.param) == ("over_limit", "stop")
