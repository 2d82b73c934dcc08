"""An engine that drafts what the prompt makes likely answers as one that does not, in fewer forwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.core_figures import DRAFT_SOURCES
from tests.integration.model_service.masks.mask_requests import await_masks
from tests.integration.model_service.running_broadcaster import running_broadcaster
from tests.integration.model_service.running_engine import Answer, RunningEngine, running_engine

PEOPLE = [("Ada Young", 36), ("Omar Haddad", 51), ("Clara Novak", 34), ("Ivan Petrov", 27)]
SPEC = GrammarSpec(
    GrammarKind.JSON_SCHEMA,
    json.dumps(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "words": {"type": "array", "items": {"type": "string"}}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    ),
)
CANONICAL = GrammarSpec(SPEC.kind, SPEC.text, canonical=True)


def question(name: str, age: int) -> str:
    return f"Extract name, age as JSON. Text: {name} is {age} years old."


def asked(spec: GrammarSpec | None = SPEC, **fields: Any) -> list[tuple[str, GrammarSpec | None, dict[str, Any]]]:
    return [(question(*person), spec, {"max_tokens": 64, **fields}) for person in PEOPLE]


def told(answers: list[Answer]) -> list[tuple[Any, ...]]:
    return [(answer.text, answer.tokens, answer.finish_reason, answer.choice["stop_reason"]) for answer in answers]


def test_the_same_answers_in_fewer_forwards(looking_up: RunningEngine, jumping: RunningEngine) -> None:
    forwards, answers = [], []
    for engine in (looking_up, jumping):
        before = engine.engine.core.steps
        answers.append([engine.ask(*request[:2], **request[2]) for request in asked()])
        forwards.append(engine.engine.core.steps - before)
    assert told(answers[0]) == told(answers[1])
    assert forwards[0] < 0.75 * forwards[1]
    accepted, none = (
        [answer.usage["completion_tokens_details"].get("accepted_prediction_tokens", 0) for answer in each] for each in answers
    )
    assert min(accepted) > 0
    core = looking_up.engine.core
    assert sum(getattr(core, f"accepted_{source}") for source in DRAFT_SOURCES) >= sum(accepted)
    assert core.drafts_words >= core.accepted_words > 0
    assert not any(none)


WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 8, "maxItems": 8}


def test_an_answer_that_repeats_itself_is_drafted_from_what_it_has_said(looking_up: RunningEngine, jumping: RunningEngine) -> None:
    """And what was refused is not drafted as often the second time."""
    schema = {"type": "object", "properties": {"words": WORDS}, "required": ["words"], "additionalProperties": False}
    text, spec = question(*PEOPLE[0]), GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema))
    before = looking_up.engine.core.accepted_answer
    first, second = (looking_up.ask(text, spec, max_tokens=128) for _ in range(2))
    assert looking_up.engine.core.accepted_answer > before
    assert told([first]) == told([second]) == told([jumping.ask(text, spec, max_tokens=128)])
    refused = [answer.usage["completion_tokens_details"]["rejected_prediction_tokens"] for answer in (first, second)]
    assert refused[0] > refused[1]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_tokens": 7},
        {"stop": ["Haddad", "34"]},
        {"min_tokens": 40},
        {"presence_penalty": 1.5, "frequency_penalty": 1.0, "repetition_penalty": 1.3},
        {"min_p": 0.3, "temperature": 0},
        {"logit_bias": {"40": 5.0, "41": -5.0}},
        {"temperature": 1.5, "seed": 11},
        {"temperature": 1.5, "seed": 11, "min_p": 0.1},
        {"bad_words": ["Young", "an"]},
    ],
)
def test_requests_mean_what_they_mean_without_drafts(fields: dict[str, Any], looking_up: RunningEngine, jumping: RunningEngine) -> None:
    assert told(looking_up.ask_all(asked(**fields))) == told(jumping.ask_all(asked(**fields)))


@pytest.mark.parametrize("spec", [None, CANONICAL, GrammarSpec(GrammarKind.REGEX, "[A-Z][a-z]+ [A-Z][a-z]+ \\([0-9]{2}\\)")])
def test_so_do_other_constraints(spec: GrammarSpec | None, looking_up: RunningEngine, jumping: RunningEngine) -> None:
    assert told(looking_up.ask_all(asked(spec))) == told(jumping.ask_all(asked(spec)))


def test_log_probabilities_are_those_of_the_tokens(looking_up: RunningEngine, jumping: RunningEngine) -> None:
    ours, theirs = (engine.ask(question(*PEOPLE[0]), SPEC, logprobs=True).choice["logprobs"]["content"] for engine in (looking_up, jumping))
    assert [one["token"] for one in ours] == [one["token"] for one in theirs]
    assert [one["logprob"] for one in ours] == pytest.approx([one["logprob"] for one in theirs], abs=1e-3)


def test_log_probabilities_of_chosen_tokens_come_beside_other_requests(looking_up: RunningEngine, jumping: RunningEngine) -> None:
    requests = [*asked(), (question(*PEOPLE[0]), SPEC, {"max_tokens": 64, "logprobs": True, "logprob_token_ids": [5, 6]})]
    ours, theirs = looking_up.ask_all(requests), jumping.ask_all(requests)
    assert told(ours) == told(theirs)
    tops = [[[top["logprob"] for top in one["top_logprobs"]] for one in each[-1].choice["logprobs"]["content"]] for each in (ours, theirs)]
    assert tops[0]
    assert [sum(row) for row in tops[0]] == pytest.approx([sum(row) for row in tops[1]], abs=1e-3)


@pytest.mark.parametrize("make", [lambda name: {"mask_socket": name}, lambda _: {"tensor_parallel_size": 2}], ids=["broadcaster", "two"])
def test_masks_of_a_broadcaster_and_several_workers_go_with_drafts(make: Callable[[str], dict[str, Any]], jumping: RunningEngine) -> None:
    name = f"maskcast-lookup-test-{uuid4().hex}"
    changes = make(name)
    with running_broadcaster(name), running_engine(prompt_lookup=True, **changes) as engine:
        if "mask_socket" in changes:
            await_masks(engine)
        assert told(engine.ask_all(asked())) == told(jumping.ask_all(asked()))
