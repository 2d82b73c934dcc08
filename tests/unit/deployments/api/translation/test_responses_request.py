"""Requests of OpenAI's Responses API: the chat completion that each is."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.translation.responses_request import LOGPROBS, chat_options, input_items, messages_of
from deployments.errors import ApiError


def options(**body: Any) -> dict[str, Any]:
    return chat_options({"input": "x", **body}, strict=True)


def translated(body: dict[str, Any]) -> None:
    chat_options(body, strict=True)
    messages_of(body, (), input_items(body))


def messages(*items: Any, before: tuple[Any, ...] = (), **body: Any) -> list[dict[str, Any]]:
    return [message for _, message in messages_of(body, before, items)]


def test_what_has_the_same_name_and_what_neither_knows_is_passed_on() -> None:
    body = {"model": "m", "temperature": 0.5, "top_p": 0.9, "metadata": {"a": "b"}, "structured_outputs": {"regex": "a"}, "unheard_of": 1}
    assert options(**body, store=False, include=["reasoning.encrypted_content"], previous_response_id="resp_1") == body


def test_names_that_differ() -> None:
    found = options(stream=True, max_output_tokens=5, reasoning={"effort": "low", "summary": "auto"}, truncation="auto")
    assert found == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 5,
        "reasoning_effort": "low",
        "truncate_prompt_tokens": -1,
    }
    assert options(top_logprobs=2) == {"logprobs": True, "top_logprobs": 2}
    assert options(include=[LOGPROBS]) == {"logprobs": True, "top_logprobs": None}


def test_the_format_of_the_text() -> None:
    schema = {"type": "object"}
    found = options(text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}, "verbosity": "low"})
    assert found == {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}}
    assert options(text={"format": {"type": "json_object"}}) == {"response_format": {"type": "json_object"}}
    assert options(text={"format": {"type": "text"}}) == {}


def test_tools_have_their_function_in_a_member() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    tools = [{"type": "function", **function}, {"type": "function", **function, "strict": False}]
    assert [tool["function"] for tool in options(tools=tools)["tools"]] == [{**function, "strict": True}, {**function, "strict": False}]


def test_choices_of_tools() -> None:
    tools = [{"type": "function", "name": name, "strict": False} for name in "fg"]
    made = [{"type": "function", "function": {"name": name, "strict": False}} for name in "fg"]
    for mode in ("auto", "required", "none"):
        assert options(tools=tools, tool_choice=mode) == {"tools": made, "tool_choice": mode}
    named = options(tools=tools, tool_choice={"type": "function", "name": "g"})
    assert named == {"tools": made, "tool_choice": {"type": "function", "function": {"name": "g"}}}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}
    assert options(tools=tools, tool_choice=allowed) == {"tools": made[1:], "tool_choice": "required"}


def test_a_text_is_a_users_message() -> None:
    assert messages(*input_items({"input": "hi"}), instructions="be brief") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    ]


def test_what_the_model_has_said_in_several_items_is_one_message() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": name, "name": name, "arguments": "{}"}

    def made(name: str) -> dict[str, Any]:
        return {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}

    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    found = messages(
        {"role": "user", "content": "ask"},
        thought,
        text,
        call("f"),
        call("g"),
        {"type": "function_call_output", "call_id": "f", "output": "1"},
    )
    assert found == [
        {"role": "user", "content": "ask"},
        {"role": "assistant", "reasoning": "hm", "content": text["content"], "tool_calls": [made("f"), made("g")]},
        {"role": "tool", "tool_call_id": "f", "content": "1"},
    ]
    picture = {"type": "input_image", "image_url": "u"}
    output = {"type": "function_call_output", "call_id": "f", "output": [{"type": "input_text", "text": "1"}, picture]}
    assert messages(output) == [
        {"role": "tool", "tool_call_id": "f", "content": [{"type": "input_text", "text": "1"}]},
        {"role": "user", "content": [picture]},
    ]
    # What follows a text or a call begins another message.
    assert [list(message) for message in messages(text, text, call("f"), thought)] == [
        ["role", "content"],
        ["role", "content", "tool_calls"],
        ["role", "reasoning"],
    ]


def test_the_conversation_before_stands_between_the_instructions_and_the_input() -> None:
    before = ({"role": "user", "content": "1"}, {"type": "message", "role": "assistant", "content": "2"})
    found = messages({"role": "user", "content": "3"}, before=before, instructions="i")
    assert [message["content"] for message in found] == ["i", "1", "2", "3"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
        ({"input": [{"type": "reasoning", "summary": [{}]}]}, "input[0]"),
        ({"input": "x", "instructions": []}, "instructions"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "output": [{"type": "input_audio"}]}]}, "input[0].output[0].type"),
        ({"input": "x", "text": "json"}, "text"),
        ({"input": "x", "text": {"format": "json"}}, "text.format"),
        ({"input": "x", "reasoning": "low"}, "reasoning"),
        ({"input": "x", "include": "all"}, "include"),
        ({"input": "x", "tools": {}}, "tools"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"input": "x", "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"input": "x", "tool_choice": {"type": "allowed_tools", "tools": [{"name": []}, 5]}}, "tool_choice.tools"),
        ({"input": "x", "n": 2}, "n"),
        ({"input": "x", "background": "yes"}, "background"),
        ({"input": "x", "background": True, "stream": True}, "stream"),
        ({"input": "x", "background": True, "store": False}, "store"),
        ({"input": "x", "messages": []}, "messages"),
        ({"input": "x", "response_format": {}}, "response_format"),
        ({"input": "x", "conversation": "c"}, "conversation"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
    ],
)
def test_what_is_malformed_or_not_supported_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as raised:
        translated(body)
    assert (raised.value.status, raised.value.param) == (400, param)
