"""What a request may cost, what it did, and the headers that tell."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from deployments.access.charges import CallCost, TokenMeter, asked_tokens, check_possible, headers, refusal
from deployments.access.window import Used, Verdict, standing
from deployments.config import KeyLimits
from deployments.errors import ApiError
from model_service.messages import Endpoint
from router.turns.shares import FORCED, PROMPT, SAMPLED


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"messages": [], "max_tokens": 20}, 30),
        ({"messages": [], "max_tokens": 20, "max_completion_tokens": 5}, 15),
        ({"messages": [], "max_tokens": 20, "n": 3}, 70),
        ({"messages": []}, 100),
        ({"messages": [], "max_tokens": 10**9, "n": 2}, 210),
        ({"prompt": "a"}, 26),
        ({"prompt": ["a", "b", "c"], "max_tokens": 2, "n": 2}, 22),
        ({"prompt": [1, 2, 3], "max_tokens": 2}, 12),
        ({"prompt": [[1], [2]], "max_tokens": 2}, 14),
        ({"prompt_embeds": ["a", "b"], "max_tokens": 2}, 14),
        ({"prompt": "a", "max_completion_tokens": 1, "max_tokens": 20, "n": 3}, 70),
        ({"prompt": "a", "messages": []}, 26),
        ({"prompt": [], "n": "many", "max_tokens": -1}, 26),
        ({"prompt": "a", "n": True, "max_tokens": 2}, 12),
        ({"messages": [], "max_tokens": 5, "lookahead": {"k": 4}}, 30),
        ({"messages": [], "max_tokens": 5, "lookahead": {}}, 25),
        ({"messages": [], "max_tokens": 5, "lookahead": {"k": 10**9}}, 90),
        ({"prompt": "a", "n": 3.0, "max_tokens": 20}, 70),
        ({"prompt": "a", "n": float("inf"), "max_tokens": 10**4400}, 26),
    ],
)
def test_a_request_is_charged_what_it_may_take(body: dict[str, Any], tokens: int) -> None:
    endpoint = Endpoint.CHAT if "prompt" not in body and "prompt_embeds" not in body else Endpoint.COMPLETION
    assert asked_tokens(endpoint, body, prompt_tokens=10, longest=100, most=100) == tokens


def test_an_answer_whose_length_is_bounded_is_charged_no_more() -> None:
    """Else a chat that says nothing of its length would fit into no minute."""
    assert asked_tokens(Endpoint.CHAT, {"messages": []}, prompt_tokens=10, longest=100_000, most=50) == 60


def usage(prompt: int, total: int) -> str:
    told = {"prompt_tokens": prompt, "total_tokens": total, "completion_tokens": total - prompt}
    return json.dumps({"choices": [], "usage": told}, separators=(",", ":"))


def asked(most: int) -> TokenMeter:
    meter = TokenMeter(most)
    meter.asked()
    return meter


def test_an_answer_costs_what_its_usage_says() -> None:
    meter = asked(1000)
    meter.piece(usage(7, 19))
    assert meter.tokens == 19


def test_an_answer_that_does_not_tell_its_usage_costs_what_it_may_have_taken() -> None:
    """However few events there were, and none of what is not streamed: one event may be a whole answer."""
    meter = asked(1000)
    for text in ('data: {"a"}\n\ndata: {"b"}\n\n', 'data: {"c"}\n\n', "data: [DONE]\n\n"):
        meter.piece(text)
    assert meter.tokens == 1000
    meter.piece(f"data: {usage(8, 30)}\n\n")
    assert meter.tokens == 30


def test_what_no_engine_was_asked_for_or_refused_costs_nothing() -> None:
    assert TokenMeter(1000).tokens == 0
    meter = asked(1000)
    meter.spared()
    assert meter.tokens == 0


def test_a_request_costs_all_answers_that_were_made_for_it() -> None:
    """Those that failed their check, too."""
    meter = asked(1000)
    meter.piece(usage(7, 19))
    meter.asked()
    meter.piece(usage(7, 20))
    assert meter.tokens == 39
    meter.asked()
    assert meter.tokens == 1039


def test_what_a_stream_tells_of_one_choice_is_not_all() -> None:
    """vLLM's `continuous_usage_stats`: in each event the tokens of that event's choice."""
    running = usage(7, 9).replace("[]", '[{"index":3}]')
    meter, cost = asked(1000), CallCost(7, 500)
    meter.piece(f"data: {running}\n\n")
    assert meter.tokens == 1000
    assert cost.piece(f"data: {running}\n\n") == SAMPLED


def test_a_look_ahead_costs_what_it_was_computed_of_and_not_what_was_said() -> None:
    meter = asked(1000)
    meter.piece(usage(7, 19).replace('"completion_tokens"', '"target_calls":300,"completion_tokens"'))
    assert meter.tokens == 307


def test_a_text_that_speaks_of_usage_tells_nothing() -> None:
    meter = asked(1000)
    meter.piece("data: " + json.dumps({"text": usage(0, 1)}))
    assert meter.tokens == 1000


def test_headers_are_openais_as_far_as_there_are_limits() -> None:
    found = standing(Verdict.ADMITTED, KeyLimits(requests_per_minute=5), {0: Used(2, 10)}, 0, 0.0)
    assert headers(found) == {
        "x-ratelimit-limit-requests": "5",
        "x-ratelimit-remaining-requests": "3",
        "x-ratelimit-reset-requests": "65.000s",
    }


def test_a_refusal_says_which_limit_and_when_to_come_again() -> None:
    limits = KeyLimits(requests_per_minute=1, tokens_per_minute=10)
    error = pickle.loads(pickle.dumps(refusal(standing(Verdict.TOKENS, limits, {0: Used(1, 10)}, 5, 2.5))))
    assert (error.status, error.code, error.kind) == (429, "rate_limit_exceeded", "tokens")
    assert "10 tokens a minute" in error.message
    assert error.headers()["Retry-After"] == "63"
    assert error.headers()["x-ratelimit-remaining-tokens"] == "0"


def test_what_never_fits_is_no_429() -> None:
    check_possible(10, 10)
    check_possible(None, 10**9)
    with pytest.raises(ApiError) as caught:
        check_possible(10, 11)
    assert (caught.value.status, caught.value.param) == (400, "max_tokens")


def test_a_call_costs_what_its_usage_says_and_until_then_an_event_a_sampled_token() -> None:
    cost = CallCost(100)
    events = 'data: {"choices":[{"text":"a"}]}\n\ndata: {"choices":[{"text":"b"}]}\n\n'
    assert cost.piece(events) == 2 * SAMPLED
    assert cost.piece("data: [DONE]\n\n") == 0
    usage = '{"usage":{"prompt_tokens":40,"total_tokens":70,"completion_tokens":30,"completion_tokens_details":{"forced_tokens":20}}}'
    more = cost.piece(usage)
    assert 2 * SAMPLED + more == (40 - 100) * PROMPT + 10 * SAMPLED + 20 * FORCED
    assert cost.piece(usage) == 0


def test_a_call_that_breaks_off_costs_what_may_have_been_computed() -> None:
    cost = CallCost(100, 500)
    first = cost.piece('data: {"choices":[{"text":"a b c d"}]}\n\n')
    assert first + cost.left() == 500 * SAMPLED
    cost.piece(usage(100, 130))
    assert cost.left() == 0
    refused = CallCost(100, 500)
    refused.spared()
    assert refused.left() == 0


def test_a_look_ahead_costs_what_the_model_was_asked_for() -> None:
    """Whoever looks ahead takes turns from others as often as who lets it write as many tokens."""
    details = '{"completion_tokens_details":{"forced_tokens":0,"lookahead":{"method":"cdlh","target_calls":90}}}'
    usage = f'{{"usage":{{"prompt_tokens":40,"total_tokens":45,"completion_tokens":5,{details[1:-1]}}}}}'
    assert CallCost(40).piece(usage) == 90 * SAMPLED
