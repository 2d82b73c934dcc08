from __future__ import annotations

import json
from typing import Any

import pytest

from load_tests.front_door.clients.events import Part, events, read_answer


def chunk(text: str | None = None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def test_an_event_has_come_when_its_last_byte_has() -> None:
    whole = chunk("a") + chunk("b")
    parts = [Part(1.0, whole[:5]), Part(2.0, whole[5 : len(chunk("a")) + 3]), Part(3.0, whole[len(chunk("a")) + 3 :])]
    assert [at_s for at_s, _ in events(parts)] == [2.0, 3.0]


def test_comments_and_empty_events_are_none() -> None:
    assert list(events([Part(1.0, b": ping\n\n\n\ndata: x\n\n")])) == [(1.0, b"x")]


def test_the_first_text_counts_and_not_the_first_event() -> None:
    parts = [
        Part(10.5, chunk("")),
        Part(11.0, chunk("He")),
        Part(12.0, chunk("llo") + chunk(None, "stop")),
        Part(12.5, b"data: [DONE]\n\n"),
    ]
    answer = read_answer(3, 200, stream=True, parts=parts, sent_s=10.0)
    assert (answer.text, answer.finish, answer.pieces, answer.body) == ("Hello", "stop", 2, 3)
    assert [answer.first_s, answer.latency_s] == pytest.approx([1.0, 2.5])


def test_an_error_in_the_stream_ends_the_answer() -> None:
    parts = [Part(1.0, chunk("He")), Part(2.0, b'data: {"error": {"code": "engine_dead"}}\n\n')]
    assert read_answer(0, 200, stream=True, parts=parts, sent_s=0.0).finish == "error"


def test_a_stream_that_breaks_off_has_no_reason_of_its_end() -> None:
    assert read_answer(0, 200, stream=True, parts=[Part(1.0, chunk("He"))], sent_s=0.0).finish == ""


def test_a_whole_answer_has_no_first_text() -> None:
    body = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}
    answer = read_answer(0, 200, stream=False, parts=[Part(4.0, json.dumps(body).encode())], sent_s=1.0)
    assert (answer.text, answer.finish, answer.first_s, answer.latency_s) == ("{}", "stop", None, 3.0)


def test_a_refusal_is_kept_as_it_was_said() -> None:
    answer = read_answer(0, 503, stream=True, parts=[Part(1.0, b'{"error": 1}')], sent_s=0.5)
    assert (answer.status, answer.text, answer.finish) == (503, '{"error": 1}', "")


def test_a_connection_that_is_lost_is_no_answer() -> None:
    assert read_answer(0, 0, stream=False, parts=[], sent_s=1.0).status == 0


def test_responses_are_read_as_chat_completions_are() -> None:
    told: list[Any] = [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": "a"},
        {"type": "response.output_text.delta", "delta": "b"},
        {"type": "response.incomplete", "response": {"status": "incomplete"}},
    ]
    parts = [Part(float(at), f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()) for at, event in enumerate(told)]
    streamed = read_answer(0, 200, True, parts, 0.0)
    assert (streamed.text, streamed.finish, streamed.pieces, streamed.first_s, streamed.latency_s) == ("ab", "length", 2, 1.0, 3.0)
    whole = {"status": "completed", "output": [{"type": "reasoning"}, {"content": [{"text": "ab"}]}]}
    answer = read_answer(0, 200, False, [Part(2.0, json.dumps(whole).encode())], 0.0)
    assert (answer.text, answer.finish) == ("ab", "stop")
