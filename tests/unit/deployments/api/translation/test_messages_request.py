"""Requests of Anthropic's Messages API: the chat completion that each is."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.translation.messages_request import THINKING_HAS_NO_EFFECT, chat_options, messages_of
from deployments.errors import ApiError

SCHEMA = {"type": "json_schema", "schema": {}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def options(**body: Any) -> dict[str, Any]:
    return chat_options({"messages": [], **body}, reasons=True)[0]


def translated(body: dict[str, Any]) -> None:
    chat_options(body, reasons=True)
    messages_of(body)


def messages(*given: Any, **body: Any) -> list[dict[str, Any]]:
    return [message for _, message in messages_of({"messages": list(given), **body})]


def test_what_has_the_same_name_and_what_neither_knows_is_passed_on() -> None:
    body = {"model": "m", "max_tokens": 5, "temperature": 0.5, "top_k": 3, "metadata": {"user_id": "u"}, "unheard_of": 1}
    assert options(**body) == body


def test_names_that_differ() -> None:
    found = options(stop_sequences=["END"], stream=True, stream_options={"include_usage": False}, output_config={"effort": "low"})
    assert found == {
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize("field", ["output_format", "output_config"])
def test_a_schema_constrains_the_answer(field: str) -> None:
    format_ = {"type": "json_schema", "schema": {"type": "object"}}
    found = options(**{field: {"format": format_} if field == "output_config" else format_})
    assert found["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_tools_are_functions() -> None:
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    assert options(tools=[tool, {**tool, "type": "custom", "strict": True}])["tools"] == [
        {"type": "function", "function": {**function, "strict": False}},
        {"type": "function", "function": {**function, "strict": True}},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_choices_of_tools(choice: dict[str, Any], expected: Any) -> None:
    assert options(tool_choice=choice) == {"tool_choice": expected}
    single = options(tool_choice={**choice, "disable_parallel_tool_use": True})
    assert single == {"tool_choice": expected, "parallel_tool_calls": False}


def test_thinking_is_for_models_that_reason() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2048}
    assert options(thinking=thinking) == {"thinking_token_budget": 2048}
    assert options(thinking={"type": "disabled"}) == {"reasoning_effort": "none"}
    assert options(thinking={"type": "adaptive"}) == {}
    assert chat_options({"messages": [], "thinking": thinking}, reasons=False) == ({}, [THINKING_HAS_NO_EFFECT])


def test_what_differs_in_each_request_of_claude_code_is_left_out() -> None:
    """A prompt begins as the one before it, and is found in the prefix cache."""
    billing, text = ({"type": "text", "text": each} for each in ("x-anthropic-billing-header: cch=a1", "Be brief."))
    assert messages(system=[billing, text]) == [{"role": "system", "content": [text]}]
    assert messages(system=[billing]) == []


def test_texts_and_images() -> None:
    text = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    found = messages({"role": "user", "content": [text, PNG, plain, linked]}, {"role": "assistant", "content": "yes"}, system="be brief")
    assert found == [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                PNG_PART,
                {"type": "text", "text": "long"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ],
        },
        {"role": "assistant", "content": "yes"},
    ]
    assert messages(system=[text, text]) == [{"role": "system", "content": [{"type": "text", "text": "hi"}] * 2}]


def test_a_call_its_result_and_what_is_said_beside_them() -> None:
    said = [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "é"}},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
    ]
    asked = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "one"}, PNG]},
        {"type": "tool_result", "tool_use_id": "t2", "is_error": True},
        {"type": "text", "text": "and now?"},
    ]
    assert messages({"role": "assistant", "content": said}, {"role": "user", "content": asked}) == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I look."}],
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":"é"}'}},
                {"id": "t2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
            "reasoning": "hm",
        },
        {"role": "tool", "tool_call_id": "t1", "content": [{"type": "text", "text": "one"}]},
        {"role": "tool", "tool_call_id": "t2", "content": ""},
        {"role": "user", "content": [PNG_PART, {"type": "text", "text": "and now?"}]},
    ]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": "hello"}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file"}}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]},
            "messages[0].content[0].source.type",
        ),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": "x"}]}]}, "messages[0].content[0].input"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}]}, "messages[0].content[0].name"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}]}, "messages[0].content[0].id"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0].tool_use_id"),
        ({"messages": [], "system": [{"type": "text"}]}, "system.text"),
        ({"messages": [], "system": 5}, "system"),
        ({"messages": [], "tools": {}}, "tools"),
        ({"messages": [], "tools": [{"type": "web_search_20260101", "name": "web_search"}]}, "tools[0]"),
        ({"messages": [], "tool_choice": "auto"}, "tool_choice"),
        ({"messages": [], "tool_choice": {"type": []}}, "tool_choice.type"),
        ({"messages": [], "output_format": {"type": "xml"}}, "output_format"),
        ({"messages": [], "output_config": {"format": []}}, "output_config.format"),
        ({"messages": [], "output_format": SCHEMA, "response_format": {}}, "output_config.format"),
        ({"messages": [], "output_format": SCHEMA, "output_config": {"format": SCHEMA}}, "output_config.format"),
        ({"messages": [], "thinking": True}, "thinking"),
        ({"messages": [], "n": 2}, "n"),
    ],
)
def test_what_is_malformed_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as raised:
        translated(body)
    assert (raised.value.status, raised.value.param) == (400, param)
