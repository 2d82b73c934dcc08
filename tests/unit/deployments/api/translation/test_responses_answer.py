"""Answers of OpenAI's Responses API, read by its own client's types."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from deployments.api.translation.responses_answer import ResponseAnswer
from deployments.errors import ApiError
from tests.unit.deployments.api.translation.chunks import CALL, MESSAGE, merged, streamed, whole

LOGPROBS = [{"token": "x", "bytes": [120], "logprob": -0.5, "top_logprobs": []}]


def answer(**body: Any) -> ResponseAnswer:
    return ResponseAnswer(body, "0123", "m")


def events(chunks: Any, **body: Any) -> list[dict[str, Any]]:
    made = answer(**body)
    told = [*made.begin(), *(event for chunk in chunks for event in made.of(chunk)), *made.end()]
    for event in told:
        TypeAdapter(ResponseStreamEvent).validate_python(event)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    return told


def test_a_whole_response() -> None:
    response = answer(instructions="i", temperature=0.5).whole(whole(MESSAGE))
    read = Response.model_validate(response)
    assert (read.id, read.status, read.output_text, read.instructions, read.temperature) == ("resp_0123", "completed", "I look.", "i", 0.5)
    thought, message, call = response["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "hm, so"}]
    assert message["content"] == [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]
    assert (call["call_id"], call["name"], call["arguments"], call["status"]) == ("call_1", "f", '{"a": 1}', "completed")
    assert read.usage is not None
    assert (read.usage.input_tokens, read.usage.input_tokens_details.cached_tokens, read.usage.output_tokens) == (7, 3, 5)
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": 2, "closed_at_limit": 1}


def test_a_stream_ends_with_the_whole_response() -> None:
    told = events(streamed(MESSAGE))
    expected = answer().whole(whole(MESSAGE))
    assert told[-1]["response"] == {**expected, **{name: told[-1]["response"][name] for name in ("created_at", "completed_at")}}
    assert [event["type"].removeprefix("response.") for event in told] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added", *["reasoning_text.delta"] * 2, "reasoning_text.done"),
        *("content_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", *["output_text.delta"] * 2, "output_text.done"),
        *("content_part.done", "output_item.done"),
        *("output_item.added", *["function_call_arguments.delta"] * 2, "function_call_arguments.done", "output_item.done"),
        "completed",
    ]


def test_items_begin_empty() -> None:
    added = [event["item"] for event in events(streamed(MESSAGE)) if event["type"] == "response.output_item.added"]
    assert [item.get("content", item.get("arguments")) for item in added] == [[], [], ""]
    assert {item["status"] for item in added} == {"in_progress"}


def test_a_call_is_one_item_also_where_its_end_comes_with_what_follows() -> None:
    output = events(merged())[-1]["response"]["output"]
    assert [(item["type"], item.get("name"), item.get("arguments")) for item in output] == [
        ("function_call", "f", '{"a": 1}'),
        ("message", None, None),
        ("function_call", "g", "{}"),
    ]


@pytest.mark.parametrize(
    ("arguments", "why", "status"),
    [('{"a": "EN', "D", "incomplete"), ("", "D", "incomplete"), ('{"a": 1}', "D", "completed"), ('{"a": "EN', None, "completed")],
)
def test_a_call_that_a_stop_sequence_cuts_off_is_incomplete(arguments: str, why: str | None, status: str) -> None:
    told = {"tool_calls": [{**CALL, "function": {"name": "f", "arguments": arguments}}]}
    (call,) = answer().whole(whole(told, stop_reason=why))["output"]
    assert call["status"] == status


def test_calls_side_by_side_are_items_of_their_own() -> None:
    output = events(streamed({"tool_calls": [CALL, {**CALL, "id": "call_2"}]}))[-1]["response"]["output"]
    assert [item["call_id"] for item in output] == ["call_1", "call_2"]
    assert len({item["id"] for item in output}) == 2


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_is_cut_off_is_incomplete(finish: str, reason: str) -> None:
    last = events(streamed({"content": "xyz"}, finish))[-1]
    assert (last["type"], last["response"]["incomplete_details"]) == ("response.incomplete", {"reason": reason})
    assert last["response"]["output"][0]["status"] == "incomplete"
    assert answer().whole(whole({"content": "xyz"}, finish))["status"] == "incomplete"


def test_log_probabilities_are_told_with_their_text() -> None:
    response = answer().whole(whole({"content": "x"}, logprobs={"content": LOGPROBS}))
    assert response["output"][0]["content"][0]["logprobs"] == LOGPROBS
    chunks = [{"id": "c", "model": "m", "choices": [{"delta": {"content": "x"}, "logprobs": {"content": LOGPROBS}}]}]
    told = {event["type"]: event for event in events(chunks)}
    assert told["response.output_text.delta"]["logprobs"] == told["response.output_text.done"]["logprobs"] == LOGPROBS


def test_a_failure_is_the_last_event() -> None:
    made = answer()
    list(made.begin())
    (event,) = made.fail(ApiError(503, "gone", code="engine_dead"))
    assert TypeAdapter(ResponseStreamEvent).validate_python(event).type == "response.failed"
    assert event["response"]["error"] == {"code": "server_error", "message": "gone"}
