"""Requests of many kinds and lengths, for engines that must answer them alike."""

from __future__ import annotations

import json
from typing import Any

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine

Ask = tuple[str, GrammarSpec | None, dict[str, Any]]
PEOPLE = ["Ada Young is 36", "Omar Haddad is 51", "Clara Novak is 34", "Ivan Petrov is 27"]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LIST = {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 3, "maxItems": 9}
COUNTED = 'start: "<" word ("," word)* ">"\nword: /[a-z]{2,8}/'
"""Of llguidance."""
MOST_TOKENS = 120


def requests(copies: int = 4) -> list[Ask]:
    """Eight kinds, one of them without a grammar, as often as that."""
    specs = [
        GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(PERSON)),
        GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(LIST)),
        GrammarSpec(GrammarKind.LARK, COUNTED),
        GrammarSpec(GrammarKind.CHOICE, '["yes", "no", "yes and no"]'),
        GrammarSpec(GrammarKind.REGEX, "([a-z]{3,7} ){12}end"),
        GrammarSpec(GrammarKind.REGEX, "[0-9 ]{40}[a-f]{20}"),
        GrammarSpec(GrammarKind.JSON_OBJECT, "{}"),
        None,
    ]
    questions = [f"Extract name, age as JSON. Text: {PEOPLE[number % len(PEOPLE)]} years old." for number in range(copies)]
    return [(question, spec, {"max_tokens": MOST_TOKENS}) for question in questions for spec in specs]


def await_masks(engine: RunningEngine) -> None:
    """Ask until the engine's workers take masks from frames: what a broadcaster has filled meanwhile may have come too late for it."""
    question, spec, _ = requests(1)[0]
    before = _mapped(engine)
    while _mapped(engine) == before:
        engine.ask(question, spec)


def _mapped(engine: RunningEngine) -> int:
    return engine.mask_counts()[0]["mapped"]
