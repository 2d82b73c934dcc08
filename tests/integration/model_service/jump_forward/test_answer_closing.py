"""Answers that are complete within their `max_tokens`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.messages import CLOSE_ARGUMENT
from tests.integration.model_service.running_engine import Answer, RunningEngine

QUESTION = "Extract name, age, job, city as JSON. Text: Clara Novak is 34 years old, a nurse, and lives in Oslo."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "notes": {"type": "array", "items": {"$ref": "#/$defs/note"}},
        "age": {"type": "integer", "minimum": 10},
        "job": {"enum": ["nurse", "doctor", "teacher"]},
        "since": {"type": ["string", "null"], "format": "date"},
    },
    "required": ["name", "notes", "age", "job", "since"],
    "additionalProperties": False,
    "$defs": {
        "note": {
            "type": "object",
            "properties": {"text": {"type": "string", "minLength": 3}, "notes": {"type": "array", "items": {"$ref": "#/$defs/note"}}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}
SPEC = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA))
PERSON = GrammarSpec(
    GrammarKind.JSON_SCHEMA,
    json.dumps(
        {**SCHEMA, "required": ["name", "age", "job"], "properties": {name: SCHEMA["properties"][name] for name in ("name", "age", "job")}}
    ),
)
VALID = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
LEAST = 40
"""Tokens of the embedded model's vocabulary: no answer is shorter."""
CLOSE = {CLOSE_ARGUMENT: 1}


def ask(engine: RunningEngine, most: int, **fields: Any) -> Answer:
    return engine.ask(QUESTION, SPEC, max_tokens=most, vllm_xargs=CLOSE, **fields)


@pytest.fixture(params=["jumping", "overlapping", "stepping", "drafting", "looking_up"])
def running(request: pytest.FixtureRequest) -> RunningEngine:
    engine = request.getfixturevalue(request.param)
    return engine if isinstance(engine, RunningEngine) else engine[0]


def test_answers_are_valid_whatever_their_max_tokens(running: RunningEngine) -> None:
    requests = [(QUESTION, SPEC, {"max_tokens": most, "vllm_xargs": CLOSE, "temperature": 1.5, "seed": most}) for most in range(LEAST, 90)]
    for (_, _, fields), answer in zip(requests, running.ask_all(requests), strict=True):
        most, closed = fields["max_tokens"], answer.usage["completion_tokens_details"]["closed_at_limit"]
        VALID.validate(json.loads(answer.text))
        assert len(answer.tokens) == answer.usage["completion_tokens"] <= most
        assert answer.finish_reason == ("length" if closed else "stop")


def test_an_answer_that_ends_by_itself_stays_as_it_is(running: RunningEngine) -> None:
    plain, closed = running.ask(QUESTION, PERSON, max_tokens=60), running.ask(QUESTION, PERSON, max_tokens=60, vllm_xargs=CLOSE)
    assert (closed.text, closed.tokens, closed.finish_reason) == (plain.text, plain.tokens, "stop")
    assert closed.usage["completion_tokens_details"]["closed_at_limit"] == 0
    assert "closed_at_limit" not in plain.usage["completion_tokens_details"]


def test_where_no_end_fits_the_answer_is_cut_as_any_other(running: RunningEngine) -> None:
    plain, cut = running.ask(QUESTION, SPEC, max_tokens=9), ask(running, 9)
    assert (cut.text, cut.finish_reason) == (plain.text, "length")
    assert cut.usage["completion_tokens_details"]["closed_at_limit"] == 0


def test_each_choice_is_closed_and_counted_and_has_a_log_probability_for_each_token(jumping: RunningEngine) -> None:
    body = jumping.body(QUESTION, SPEC, max_tokens=LEAST, vllm_xargs=CLOSE, n=3, temperature=1.5, seed=3, logprobs=True)
    for choice in body["choices"]:
        VALID.validate(json.loads(choice["message"]["content"]))
        assert len(choice["logprobs"]["content"]) == len(choice["token_ids"])
        assert choice["finish_reason"] == "length"
    assert body["usage"]["completion_tokens_details"]["closed_at_limit"] == 3


def test_a_streamed_answer_is_closed_as_a_whole_one(jumping: RunningEngine) -> None:
    events = jumping.events(QUESTION, SPEC, max_tokens=LEAST, vllm_xargs=CLOSE, stream_options={"include_usage": True})
    text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
    assert text == ask(jumping, LEAST).text
    assert events[-1]["usage"]["completion_tokens_details"]["closed_at_limit"] == 1
