"""Answers of Anthropic's Messages API, read by its own client's types."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from deployments.api.translation.messages_answer import MessageAnswer, error_body
from deployments.errors import ApiError
from tests.unit.deployments.api.translation.chunks import CALL, MESSAGE, merged, streamed, whole

CONTENT = [
    {"type": "thinking", "thinking": "hm, so", "signature": ""},
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
]
USAGE = {
    "input_tokens": 4,
    "output_tokens": 5,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 0,
    "output_tokens_details": {"thinking_tokens": 2, "closed_at_limit": 1},
}


def events(chunks: Any) -> list[dict[str, Any]]:
    answer = MessageAnswer()
    told = [*answer.begin(), *(event for chunk in chunks for event in answer.of(chunk)), *answer.end()]
    for event in told:
        TypeAdapter(RawMessageStreamEvent).validate_python(event)
    return told


def test_a_whole_message() -> None:
    message = MessageAnswer().whole(whole(MESSAGE, "tool_calls"))
    assert Message.model_validate(message).id == "msg_0123"
    assert (message["content"], message["stop_reason"], message["usage"]) == (CONTENT, "tool_use", USAGE)


def test_a_streamed_message_has_the_same_blocks() -> None:
    told = events(streamed(MESSAGE, "tool_calls"))
    assert [event["type"] for event in told if event["type"] != "content_block_delta"] == [
        "message_start",
        *["content_block_start", "content_block_stop"] * 3,
        "message_delta",
        "message_stop",
    ]
    deltas = [(event["index"], *event["delta"].values()) for event in told if event["type"] == "content_block_delta"]
    assert deltas == [
        (0, "thinking_delta", "hm"),
        (0, "thinking_delta", ", so"),
        (1, "text_delta", "I "),
        (1, "text_delta", "look."),
        (2, "input_json_delta", '{"a'),
        (2, "input_json_delta", '": 1}'),
    ]
    assert told[0]["message"]["usage"]["input_tokens"] == 7
    assert told[-2] == {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": USAGE}


def test_calls_side_by_side_are_blocks_of_their_own() -> None:
    told = events(streamed({"tool_calls": [CALL, {**CALL, "id": "call_2"}]}))
    assert [event["content_block"]["id"] for event in told if event["type"] == "content_block_start"] == ["call_1", "call_2"]


def test_a_call_is_one_block_also_where_its_end_comes_with_what_follows() -> None:
    told = events(merged())
    starts = [event["content_block"] for event in told if event["type"] == "content_block_start"]
    assert [(block["type"], block.get("name")) for block in starts] == [("tool_use", "f"), ("text", None), ("tool_use", "g")]
    deltas = [(event["index"], *event["delta"].values()) for event in told if event["type"] == "content_block_delta"]
    assert deltas == [
        (0, "input_json_delta", '{"a":'),
        (0, "input_json_delta", " 1}"),
        (1, "text_delta", "And"),
        (2, "input_json_delta", "{}"),
    ]


@pytest.mark.parametrize(
    ("arguments", "why", "expected"),
    [
        ('{"a": "EN', "D", ("stop_sequence", "D")),
        ("", "D", ("stop_sequence", "D")),
        ('{"a": 1}', "D", ("tool_use", None)),
        ('{"a": "EN', None, ("tool_use", None)),
    ],
)
def test_a_call_that_a_stop_sequence_cuts_off_is_not_to_be_made(arguments: str, why: str | None, expected: tuple[str, str | None]) -> None:
    told = {"tool_calls": [{**CALL, "function": {"name": "f", "arguments": arguments}}]}
    message = MessageAnswer().whole(whole(told, "stop", stop_reason=why))
    assert (message["stop_reason"], message["stop_sequence"]) == expected
    (end,) = [event["delta"] for event in events(streamed(told, "stop", stop_reason=why)) if event["type"] == "message_delta"]
    assert tuple(end.values()) == expected


@pytest.mark.parametrize(
    ("finish", "why", "expected"),
    [
        ("stop", None, ("end_turn", None)),
        ("stop", "END", ("stop_sequence", "END")),
        ("stop", 151643, ("end_turn", None)),
        ("length", None, ("max_tokens", None)),
        ("content_filter", None, ("refusal", None)),
    ],
)
def test_why_it_ended(finish: str, why: Any, expected: tuple[str, str | None]) -> None:
    message = MessageAnswer().whole(whole({"content": "x"}, finish, stop_reason=why))
    assert (message["stop_reason"], message["stop_sequence"]) == expected
    delta = events(streamed({"content": "x"}, finish, stop_reason=why))[-2]["delta"]
    assert (delta["stop_reason"], delta["stop_sequence"]) == expected


@pytest.mark.parametrize(("arguments", "expected"), [('{"a": "b', {"a": "b"}), ("{", {}), ("[1]", {}), ("no", {}), ("", {})])
def test_arguments_that_were_cut_off(arguments: str, expected: Any) -> None:
    call = {**CALL, "function": {"name": "f", "arguments": arguments}}
    assert MessageAnswer().whole(whole({"tool_calls": [call]}, "length"))["content"][0]["input"] == expected


def test_warnings_travel_along() -> None:
    told = {"warnings": [{"code": "no_effect"}]}
    assert MessageAnswer().whole({**whole({"content": "x"}), "maskcast": told})["maskcast"] == told
    first, *_ = streamed({"content": "x"})
    assert events([{**first, "maskcast": told}])[0]["message"]["maskcast"] == told


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
    ],
)
def test_errors(status: int, kind: str) -> None:
    error = error_body(ApiError(status, "no", code="c", param="p"))
    assert error == {"type": "error", "error": {"type": kind, "message": "no", "code": "c", "param": "p"}}
