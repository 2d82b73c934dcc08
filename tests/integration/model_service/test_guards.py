"""What a guard takes away is away on a real engine, with jumps, drafts and the broadcaster alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.spec import COMPACT, STANDARD, GrammarKind, GrammarSpec
from tests.integration.model_service.running_broadcaster import RunningBroadcaster
from tests.integration.model_service.running_engine import Answer, RunningEngine

FLAGS = {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 5}
WORDS = {"type": "array", "items": {"type": "string", "pattern": "^[ab]"}, "uniqueItems": True, "minItems": 3, "maxItems": 5}
NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True, "minItems": 6, "maxItems": 6}
PERSON = {
    "type": "object",
    "properties": {"married": {"type": "boolean"}, "age": {"type": "integer"}, "name": {"type": "string", "maxLength": 20}},
    "required": ["age", "name"],
    "additionalProperties": False,
}
SPECS = [
    *(
        GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace)
        for schema in (FLAGS, WORDS, NUMBERS)
        for whitespace in (STANDARD, COMPACT)
    ),
    GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(PERSON), any_order=True),
]
QUESTION = "Extract name, age as JSON. Text: Clara Novak is 34 years old, name name name, 34 34 34."
ASKS: list[tuple[str, GrammarSpec | None, dict[str, Any]]] = [
    (QUESTION, spec, {"max_tokens": 160, "temperature": temperature, "seed": 3}) for spec in SPECS for temperature in (0, 1.2)
]


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def check(answers: list[Answer]) -> None:
    """Those that ended are whole, and have nothing twice."""
    ended = [answer for answer in answers if answer.finish_reason == "stop"]
    assert len(ended) > len(answers) / 2
    for answer in ended:
        value = json.loads(answer.text, object_pairs_hook=unique)
        assert isinstance(value, dict) or len(set(value)) == len(value), answer.text


@pytest.fixture(scope="module")
def expected(stepping: RunningEngine) -> list[Answer]:
    return stepping.ask_all(ASKS)


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def test_nothing_comes_twice(expected: list[Answer]) -> None:
    check(expected)


def test_nothing_does_with_jumps(jumping: RunningEngine) -> None:
    answers = jumping.ask_all(ASKS)
    check(answers)
    assert sum(answer.forced for answer in answers) > 0


def test_nothing_does_with_drafts_jumps_and_masks_from_the_broadcaster(
    drafting: tuple[RunningEngine, RunningBroadcaster], jumping: RunningEngine
) -> None:
    engine, broadcaster = drafting
    before = broadcaster.totals()["rows"]
    # Greedily: what a seed draws depends on the drafts.
    answers = engine.ask_all(ASKS[::2])
    check(answers)
    assert texts(answers) == texts(jumping.ask_all(ASKS[::2]))
    assert broadcaster.totals()["rows"] > before
    assert broadcaster.totals()["refused"] == 0


def test_members_come_in_the_order_that_the_model_likes(jumping: RunningEngine) -> None:
    declared = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(PERSON))
    orders = [[*json.loads(jumping.ask(QUESTION, spec).text)] for spec in (SPECS[-1], declared)]
    assert orders[0].index("name") < orders[0].index("age")
    assert orders[1].index("age") < orders[1].index("name")
