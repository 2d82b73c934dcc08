"""Bodies are read or refused with the field at fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.access.caller import ANYBODY, Caller, Scope
from deployments.access.request_bounds import RequestBounds
from deployments.api.protocol import MAX_NAMED_TEXT_BYTES, MAX_TEXT_BYTES, RequestReader
from deployments.api.request_fields.kinds import FieldRules
from deployments.config import KeyLimits
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested
from deployments.errors import ApiError
from model_service.messages import CLOSE_ARGUMENT, GENERATING, MOST_ARGUMENT, Endpoint

READER = RequestReader("tiny", "hermes", ConstraintDefaults())
MESSAGES = [{"role": "user", "content": "hello"}]


def test_the_model_may_be_left_out_but_not_be_another() -> None:
    assert READER.read(Endpoint.CHAT, {"messages": MESSAGES}).body["model"] == "tiny"
    assert READER.read(Endpoint.CHAT, {"model": None, "messages": MESSAGES}).body["model"] == "tiny"
    assert READER.read(Endpoint.CHAT, {"model": "", "messages": MESSAGES}).body["model"] == "tiny"
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {"model": "other", "messages": MESSAGES})
    assert (caught.value.status, caught.value.code, caught.value.param) == (404, "model_not_found", "model")


def test_an_adapter_is_a_model_too() -> None:
    reader = RequestReader("tiny", "hermes", ConstraintDefaults(), adapters=("one", "two"))
    assert reader.read(Endpoint.CHAT, {"model": "two", "messages": MESSAGES}).body["model"] == "two"
    with pytest.raises(ApiError, match="'tiny', 'one', 'two'"):
        reader.read(Endpoint.CHAT, {"model": "other", "messages": MESSAGES})


def test_the_clients_body_is_not_changed() -> None:
    body: dict[str, Any] = {"messages": MESSAGES, "guided_regex": "a"}
    assert READER.read(Endpoint.CHAT, body).requested is not None
    assert body == {"messages": MESSAGES, "guided_regex": "a"}


@pytest.mark.parametrize(("field", "value"), [("min_tokens", 5), ("allowed_token_ids", [5]), ("bad_words", ["a"])])
def test_what_would_loosen_a_constraint_is_refused_with_one(field: str, value: Any) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {"messages": MESSAGES, "guided_regex": "a", field: value})
    assert caught.value.param == field
    READER.read(Endpoint.CHAT, {"messages": MESSAGES, field: value})


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_a_format_beside_a_tool_that_must_be_called_is_passed_over_with_a_warning(choice: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    body = {"messages": MESSAGES, "tools": tools, "tool_choice": choice, "response_format": {"type": "json_object"}}
    request = READER.read(Endpoint.CHAT, body)
    assert isinstance(request.requested, Requested)
    assert request.requested.places is not None
    assert [warning.pointer for warning in request.warnings] == ["/response_format"]
    assert not READER.read(Endpoint.CHAT, {**body, "response_format": {"type": "text"}}).warnings


def test_ignore_eos_is_dropped_with_a_warning_where_a_constraint_ends_the_answer() -> None:
    body = {"messages": MESSAGES, "ignore_eos": True}
    constrained = READER.read(Endpoint.CHAT, {**body, "guided_regex": "a"})
    assert "ignore_eos" not in constrained.body
    assert [(one.code, one.pointer) for one in constrained.warnings] == [("no_effect", "/ignore_eos")]
    free = READER.read(Endpoint.CHAT, body)
    assert free.body["ignore_eos"] is True
    assert not free.warnings


def test_only_listed_arguments_reach_into_the_engine() -> None:
    body = {"messages": MESSAGES, "vllm_xargs": {"kv_cache_report_mode": "full"}}
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, body)
    assert (caught.value.status, caught.value.param) == (400, "vllm_xargs")
    reader = replace(READER, rules=FieldRules(extra=frozenset({"kv_cache_report_mode"})))
    assert reader.read(Endpoint.CHAT, body).body["vllm_xargs"] == body["vllm_xargs"]
    assert READER.read(Endpoint.CHAT, {**body, "vllm_xargs": {}}).body


def test_priority_is_for_engines_that_go_by_it_and_keys_with_its_scope() -> None:
    body, by_priority = {"messages": MESSAGES, "priority": -1}, replace(READER, rules=FieldRules(has_priorities=True))
    caller = Caller("one", frozenset({Scope.GENERATE}), KeyLimits())
    for reader, status in ((READER, 400), (by_priority, 403)):
        with pytest.raises(ApiError) as caught:
            reader.read(Endpoint.CHAT, body, caller)
        assert (caught.value.status, caught.value.param) == (status, "priority")
    for scope in (Scope.PRIORITY, Scope.ADMIN):
        assert by_priority.read(Endpoint.CHAT, body, replace(caller, scopes=frozenset({scope}))).body["priority"] == -1
    assert READER.read(Endpoint.CHAT, {**body, "priority": 0}, caller)


def test_only_a_setting_lets_prompts_be_embeddings_or_arguments_reach_the_template() -> None:
    embedded, thinking = {"prompt_embeds": "QQ=="}, {"messages": MESSAGES, "chat_template_kwargs": {"enable_thinking": True}}
    for endpoint, body, param in ((Endpoint.COMPLETION, embedded, "prompt_embeds"), (Endpoint.CHAT, thinking, "chat_template_kwargs")):
        with pytest.raises(ApiError) as caught:
            READER.read(endpoint, body)
        assert caught.value.param == param
    reader = replace(READER, rules=FieldRules(template_arguments=frozenset({"enable_thinking"}), takes_embeddings=True))
    assert reader.read(Endpoint.COMPLETION, embedded).body["prompt_embeds"] == ["QQ=="]
    assert reader.read(Endpoint.CHAT, thinking).body["chat_template_kwargs"] == {"enable_thinking": True}


def test_a_key_bounds_answers_whose_requests_do_not() -> None:
    caller = replace(ANYBODY, bounds=RequestBounds(max_tokens=10))
    told = READER.read(Endpoint.CHAT, {"messages": MESSAGES}, caller).body
    assert (told["vllm_xargs"], "max_tokens" in told) == ({MOST_ARGUMENT: 10}, False)
    assert READER.read(Endpoint.COMPLETION, {"prompt": "x"}, caller).body["max_tokens"] == 10
    assert READER.read(Endpoint.CHAT, {"messages": MESSAGES, "max_tokens": 9}, caller).body["max_tokens"] == 9
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {"messages": MESSAGES, "max_completion_tokens": 11}, caller)
    assert caught.value.param == "max_completion_tokens"


@pytest.mark.parametrize("value", [1, 0, "yes", "true", "", []])
@pytest.mark.parametrize("endpoint", GENERATING)
def test_whether_to_stream_is_true_or_false(endpoint: Endpoint, value: Any) -> None:
    """The engine would stream for some of these, to a door that expects a whole answer."""
    body = {"messages": MESSAGES} if endpoint is Endpoint.CHAT else {"prompt": "Say."}
    with pytest.raises(ApiError) as caught:
        READER.read(endpoint, {**body, "stream": value})
    assert (caught.value.status, caught.value.param) == (400, "stream")
    assert [READER.read(endpoint, {**body, "stream": told}).stream for told in (True, False, None)] == [True, False, False]


def test_asking_for_forced_spans_is_taken_out_of_the_body() -> None:
    request = READER.read(Endpoint.CHAT, {"messages": MESSAGES, "mark_forced": True})
    assert request.mark_forced
    assert "mark_forced" not in request.body
    assert not READER.read(Endpoint.CHAT, {"messages": MESSAGES}).mark_forced
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {"messages": MESSAGES, "mark_forced": 1})
    assert caught.value.param == "mark_forced"


def test_an_answer_that_is_to_be_closed_at_its_limit_tells_the_engine() -> None:
    constrained = {"messages": MESSAGES, "response_format": {"type": "json_object"}}
    request = READER.read(Endpoint.CHAT, {**constrained, "close_at_limit": True})
    assert request.body["vllm_xargs"] == {CLOSE_ARGUMENT: 1}
    assert request.warnings == ()
    assert "vllm_xargs" not in READER.read(Endpoint.CHAT, {**constrained, "close_at_limit": False}).body
    free = READER.read(Endpoint.CHAT, {"messages": MESSAGES, "close_at_limit": True})
    assert [warning.pointer for warning in free.warnings] == ["/close_at_limit"]
    canonical = {"messages": MESSAGES, "structured_outputs": {"json_object": True, "canonical": True}}
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {**canonical, "close_at_limit": True})
    assert caught.value.param == "close_at_limit"


def test_what_no_backend_enforces_is_checked_where_the_request_or_the_setting_says_so() -> None:
    body: dict[str, Any] = {"messages": MESSAGES, "json_schema": {}}
    asked = READER.read(Endpoint.CHAT, {**body, "unenforceable": "check"})
    assert asked.check
    assert asked.can_be_checked
    assert "unenforceable" not in asked.body
    assert not READER.read(Endpoint.CHAT, body).check
    by_setting = RequestReader("tiny", "hermes", ConstraintDefaults(check=True))
    assert by_setting.read(Endpoint.CHAT, body).check
    assert not by_setting.read(Endpoint.CHAT, {**body, "unenforceable": "refuse"}).check
    assert not READER.read(Endpoint.CHAT, {"messages": MESSAGES, "guided_regex": "a", "unenforceable": "check"}).can_be_checked


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"unenforceable": "check", "logprobs": True}, "logprobs"),
        ({"unenforceable": "maybe"}, "unenforceable"),
        ({"unenforceable": "check", "echo": True}, "echo"),
    ],
)
def test_a_check_of_what_is_no_answer_alone_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.COMPLETION, {"prompt": "x", "json_schema": {}, **fields})
    assert caught.value.param == param


def test_texts_whose_tokens_are_wanted_have_a_bound() -> None:
    fits, named = "a" * (MAX_TEXT_BYTES - 100), "a" * (MAX_NAMED_TEXT_BYTES - 100)
    READER.read(Endpoint.TOKENIZE, {"prompt": fits})
    READER.read(Endpoint.TOKENIZE, {"prompt": named, "return_token_strs": True})
    for field, body in (
        ("prompt", {"prompt": fits + "a" * 100}),
        ("messages", {"messages": [{"role": "user", "content": fits + "a" * 100}]}),
        ("prompt", {"prompt": named + "a" * 100, "return_token_strs": True}),
    ):
        with pytest.raises(ApiError) as caught:
            READER.read(Endpoint.TOKENIZE, body)
        assert (caught.value.code, caught.value.param) == ("over_limit", field)
