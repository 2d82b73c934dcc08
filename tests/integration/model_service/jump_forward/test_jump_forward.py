"""An engine that jumps answers as one that does not, and asks the model less often."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine

QUESTION = "Extract name, age as JSON. Text: Clara Novak is 34 years old."
ANSWER = '{"name": "Clara Novak", "age": 34}'
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SPEC = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(PERSON))
LONG_WORD = "All of this has been decided ahead of time, and the model is not asked"
FORCED = GrammarSpec(GrammarKind.CHOICE, json.dumps([f"{LONG_WORD}, yes", f"{LONG_WORD}, no"]))


def test_the_same_tokens_in_fewer_forwards(jumper: RunningEngine, stepping: RunningEngine) -> None:
    answer, stepped = jumper.ask(QUESTION, SPEC), stepping.ask(QUESTION, SPEC)
    assert answer.text == stepped.text == ANSWER
    assert answer.tokens == stepped.tokens
    assert answer.finish_reason == stepped.finish_reason == "stop"
    assert answer.usage["completion_tokens"] == stepped.usage["completion_tokens"] == len(answer.tokens)
    assert answer.usage["prompt_tokens"] == stepped.usage["prompt_tokens"]
    assert stepped.forced == 0
    # Some of it is among what is drafted.
    assert answer.forced > len(answer.tokens) / 3


@pytest.mark.parametrize(("engine", "late"), [("jumping", 0), ("overlapping", 1)])
def test_a_segment_between_choices_saves_one_forward_less_where_steps_overlap(
    engine: str, late: int, request: pytest.FixtureRequest
) -> None:
    running: RunningEngine = request.getfixturevalue(engine)
    before = copy(running.engine.forced)
    answer, totals = running.ask(QUESTION, SPEC), running.engine.forced
    segments = totals.segments - before.segments
    # The first is computed with the prompt, and the last ends the answer.
    assert answer.forced - (totals.steps_saved - before.steps_saved) == late * (segments - 2)
    assert segments > 2


@pytest.mark.parametrize("most", range(1, 17))
def test_max_tokens_cuts_inside_a_segment(jumper: RunningEngine, stepping: RunningEngine, most: int) -> None:
    answer, stepped = jumper.ask(QUESTION, SPEC, max_tokens=most), stepping.ask(QUESTION, SPEC, max_tokens=most)
    assert (answer.text, answer.tokens, answer.finish_reason) == (stepped.text, stepped.tokens, stepped.finish_reason)
    assert answer.usage["completion_tokens"] == most


@pytest.mark.parametrize("stop", ['"name', ": ", '", "a', "age", "}", "4"])
@pytest.mark.parametrize("included", [False, True])
def test_a_stop_string_inside_a_segment_ends_the_answer(jumper: RunningEngine, stepping: RunningEngine, stop: str, included: bool) -> None:
    fields: dict[str, Any] = {"stop": [stop], "include_stop_str_in_output": included}
    answer, stepped = jumper.ask(QUESTION, SPEC, **fields), stepping.ask(QUESTION, SPEC, **fields)
    assert (answer.text, answer.tokens, answer.finish_reason) == (stepped.text, stepped.tokens, stepped.finish_reason)
    assert answer.choice["stop_reason"] == stepped.choice["stop_reason"] == stop
    assert answer.usage["completion_tokens"] == stepped.usage["completion_tokens"]


def test_what_is_forced_is_certain(jumper: RunningEngine, stepping: RunningEngine) -> None:
    answer, stepped = jumper.ask(QUESTION, SPEC, logprobs=True), stepping.ask(QUESTION, SPEC, logprobs=True)
    *told, end = answer.choice["logprobs"]["content"]
    assert answer.text == ANSWER == "".join(token["token"] for token in told)
    assert end["logprob"] == 0
    assert answer.forced > 0
    values, own = ([token["logprob"] for token in each.choice["logprobs"]["content"]] for each in (answer, stepped))
    assert values.count(0) >= answer.forced
    # Without jumps the model chooses the tokens in which it writes what is forced.
    assert sum(values) == pytest.approx(sum(own), abs=1e-3)


@pytest.mark.parametrize("fields", [{"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "logprob_token_ids": [5, 6]}])
def test_log_probabilities_are_the_models_own(fields: dict[str, Any], jumper: RunningEngine, stepping: RunningEngine) -> None:
    answer, stepped = jumper.ask(QUESTION, SPEC, **fields), stepping.ask(QUESTION, SPEC, **fields)
    assert answer.text == ANSWER
    assert answer.choice["logprobs"] == stepped.choice["logprobs"]
    assert len(answer.choice["logprobs"]["content"]) == len(answer.tokens)


def test_penalties_count_forced_tokens(jumper: RunningEngine, stepping: RunningEngine) -> None:
    fields: dict[str, Any] = {"presence_penalty": 1.5, "frequency_penalty": 1.0, "repetition_penalty": 1.3}
    answer, stepped = jumper.ask(QUESTION, SPEC, **fields), stepping.ask(QUESTION, SPEC, **fields)
    assert answer.tokens == stepped.tokens
    assert answer.forced > 0


def test_seeds_repeat_and_choices_differ(jumper: RunningEngine) -> None:
    fields: dict[str, Any] = {"temperature": 1.5, "seed": 7, "n": 4}
    first, second = jumper.body(QUESTION, SPEC, **fields), jumper.body(QUESTION, SPEC, **fields)
    texts = [choice["message"]["content"] for choice in first["choices"]]
    assert texts == [choice["message"]["content"] for choice in second["choices"]]
    assert len(set(texts)) > 1
    assert first["usage"]["completion_tokens"] == sum(len(choice["token_ids"]) for choice in first["choices"])


def test_seeds_are_the_same_however_steps_are_scheduled(jumping: RunningEngine, overlapping: RunningEngine) -> None:
    seeded = [(QUESTION, SPEC, {"temperature": 1.5, "seed": seed}) for seed in range(8)]
    answers = [[answer.tokens for answer in engine.ask_all(seeded)] for engine in (jumping, overlapping)]
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1


def test_a_long_segment_ahead_of_the_first_choice_is_prefilled(jumper: RunningEngine) -> None:
    first = jumper.ask("Answer.", FORCED)
    assert first.text in (f"{LONG_WORD}, yes", f"{LONG_WORD}, no")
    # One forward for the prompt and the segment; the word after it is the model's, and what follows is forced again.
    assert first.forced >= len(first.tokens) - 2
    again = jumper.ask("Answer.", FORCED)
    assert again.tokens == first.tokens
    # What was cached of the segment is not counted among the prompt's tokens.
    assert again.usage["prompt_tokens_details"]["cached_tokens"] <= again.usage["prompt_tokens"]


def test_an_answer_without_any_choice_costs_one_forward(jumper: RunningEngine) -> None:
    answer = jumper.ask("Answer.", GrammarSpec(GrammarKind.JSON_SCHEMA, '{"const": {"answer": ["no", "choice"]}}'))
    assert json.loads(answer.text) == {"answer": ["no", "choice"]}
    assert answer.finish_reason == "stop"
    assert answer.forced == len(answer.tokens) - 1


@pytest.mark.parametrize("most", [1, 2, 5])
def test_max_tokens_cuts_the_prefilled_segment(jumper: RunningEngine, most: int) -> None:
    answer = jumper.ask("Answer.", FORCED, max_tokens=most)
    assert LONG_WORD.startswith(answer.text)
    assert answer.finish_reason == "length"
    assert len(answer.tokens) == most == answer.usage["completion_tokens"]


def test_many_requests_at_once_each_get_their_own(jumper: RunningEngine) -> None:
    people = [("Ada Young", 36), ("Omar Haddad", 51), ("Clara Novak", 34), ("Ivan Petrov", 27)]
    questions = [f"Extract name, age as JSON. Text: {name} is {age} years old." for name, age in people for _ in range(12)]
    together = jumper.ask_all([(question, SPEC, {}) for question in questions])
    alone = {question: jumper.ask(question, SPEC).text for question in set(questions)}
    assert [answer.text for answer in together] == [alone[question] for question in questions]


@pytest.mark.parametrize("engine", ["jumping", "overlapping"])
def test_spans_tell_which_text_was_forced(engine: str, request: pytest.FixtureRequest) -> None:
    jumper: RunningEngine = request.getfixturevalue(engine)
    choice = jumper.body(QUESTION, SPEC, mark_forced=True)["choices"][0]
    assert choice["message"]["content"] == ANSWER
    forced = _covered([tuple(span) for span in choice["forced_spans"]])
    certain = [range(len('{"name":')), range(ANSWER.index("age"), ANSWER.index(" 34")), [len(ANSWER) - 1]]
    chosen = [ANSWER.index("Clara"), ANSWER.index("34")]
    assert forced.issuperset(place for places in certain for place in places)
    assert forced.isdisjoint(chosen)
    events = jumper.events(QUESTION, SPEC, mark_forced=True, stream_options={"include_usage": True})
    streamed = [tuple(span) for event in events for part in event["choices"] for span in part.get("forced_spans", ())]
    assert _covered(streamed) == _covered([tuple(span) for span in choice["forced_spans"]])
    assert events[-1]["usage"]["completion_tokens_details"]["forced_tokens"] > 0


def test_spans_are_left_out_unless_asked_for(jumper: RunningEngine) -> None:
    assert "forced_spans" not in json.dumps(jumper.body(QUESTION, SPEC))
    assert "forced_spans" not in json.dumps(jumper.events(QUESTION, SPEC))


def test_nothing_is_left_of_answered_requests(jumper: RunningEngine) -> None:
    jumper.ask_all([(QUESTION, SPEC, {}) for _ in range(8)])
    assert jumper.engine.running == 0
    assert jumper.engine.outstanding_prefill_tokens == 0


def _covered(spans: list[tuple[int, ...]]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}
