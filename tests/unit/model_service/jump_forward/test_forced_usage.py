"""Answers say what was forced, and are otherwise left as they are."""

from __future__ import annotations

import json
from typing import Any

from model_service.jump_forward.account import ForcedAccount
from model_service.jump_forward.forced_usage import ForcedUsage

USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


def _account() -> ForcedAccount:
    account = ForcedAccount()
    account.add(0, 4, 0, 9)
    return account


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body)}\n\n"


def _read(event: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(event.removeprefix("data: "))
    return body


def test_a_whole_answer_has_the_count_beside_other_details() -> None:
    body = {"choices": [{"index": 0}], "usage": {**USAGE, "completion_tokens_details": {"reasoning_tokens": 2}}}
    told = json.loads(ForcedUsage(_account(), spans=False).whole(json.dumps(body)))
    assert told["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2, "forced_tokens": 4}
    assert told["choices"] == [{"index": 0}]


def test_spans_stand_in_each_choice_that_asks_for_them() -> None:
    body = {"choices": [{"index": 0}, {"index": 1}], "usage": USAGE}
    told = json.loads(ForcedUsage(_account(), spans=True).whole(json.dumps(body)))
    assert [choice["forced_spans"] for choice in told["choices"]] == [[[0, 9]], []]


def test_events_pass_untouched_unless_they_have_something_to_tell() -> None:
    teller = ForcedUsage(_account(), spans=False)
    plain = _event({"choices": [{"index": 0, "delta": {"content": "né"}}]})
    assert teller.event(plain) == plain
    assert teller.event("data: [DONE]\n\n") == "data: [DONE]\n\n"
    last = _read(teller.event(_event({"choices": [], "usage": USAGE})))
    assert last["usage"]["completion_tokens_details"] == {"forced_tokens": 4}
    assert _read(teller.event(_event({"choices": [], "usage": None}))) == {"choices": [], "usage": None}


def test_a_span_is_told_with_text_and_not_with_the_opening_event() -> None:
    teller = ForcedUsage(_account(), spans=True)
    opening = _read(teller.event(_event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})))
    assert "forced_spans" not in opening["choices"][0]
    first = _read(teller.event(_event({"choices": [{"index": 0, "delta": {"content": "x"}}]})))
    assert first["choices"][0]["forced_spans"] == [[0, 9]]
    second = _read(teller.event(_event({"choices": [{"index": 0, "delta": {"content": "y"}}]})))
    assert "forced_spans" not in second["choices"][0]


def test_an_error_in_the_stream_is_passed_on() -> None:
    error = _event({"error": {"message": "gone"}})
    assert _read(ForcedUsage(_account(), spans=True).event(error)) == {"error": {"message": "gone"}}


def test_a_span_ends_where_a_stop_string_has_cut_the_text() -> None:
    body = {"choices": [{"index": 0, "message": {"content": '{"name'}, "stop_reason": '": "'}], "usage": USAGE}
    told = json.loads(ForcedUsage(_account(), spans=True).whole(json.dumps(body)))
    assert told["choices"][0]["forced_spans"] == [[0, 6]]


def test_more_of_a_choice_is_told_as_it_comes_and_with_a_whole_answer_at_once() -> None:
    waiting = [[1, 2], [], [3]]
    teller = ForcedUsage(_account(), False, of_choice={"steps": lambda _: waiting.pop(0)})
    events = [_read(teller.event(_event({"choices": [{"index": 0, "delta": {"content": "x"}}]}))) for _ in range(3)]
    assert [event["choices"][0].get("steps") for event in events] == [[1, 2], None, [3]]
    whole = ForcedUsage(_account(), False, of_choice={"steps": lambda _: [1, 2, 3]})
    assert json.loads(whole.whole(json.dumps({"choices": [{"index": 0}]})))["choices"][0]["steps"] == [1, 2, 3]
