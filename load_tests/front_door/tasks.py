"""Questions with constraints, drawn from a seed.

*Character* has the shape of SGLang's report on compressed finite state machines (LMSYS, February 2024): data of a fictional character from
a short prompt. Its strings are bounded, so that a weak model ends its answers too, and bounded by lengths, since xgrammar, which both
engines are to use for schemas, is not trusted with patterns here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.errors import UnknownTask
from load_tests.front_door.figures import CHARACTER, EXTRACTION, FREE
from model_service.embedded import vocabulary as words
from model_service.embedded.documents import Value
from model_service.embedded.tasks import exercises

SEED = 17

_NAME = {"type": "string", "maxLength": 16}


@dataclass(frozen=True, slots=True)
class Question:
    """One request as a user puts it: what the user says, and the constraint of the answer."""

    content: str
    spec: GrammarSpec


def make_questions(name: str, count: int) -> tuple[list[Question], int]:
    """`count` questions of a task, the same ones at every call, and its most tokens of an answer. Raises UnknownTask."""
    make, max_tokens = _maker(name)
    return list(islice(make(), count)), max_tokens


def _json(schema: dict[str, Any]) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_CHARACTER_SCHEMA = _object(
    {
        "name": _NAME,
        "house": {"enum": ["Emberfall", "Tidewatch", "Thornfield", "Skyhollow"]},
        "blood status": {"enum": ["Old-blood", "Mixed-blood", "Newcomer"]},
        "occupation": {"enum": ["apprentice", "lecturer", "warden", "keeper of the archive", "envoy to the lakes"]},
        "wand": _object(
            {"wood": _NAME, "core": {"enum": ["river pearl", "owl feather", "copper thread"]}, "length": {"enum": [9.5, 10.25, 11, 12.75]}}
        ),
        "alive": {"enum": ["Alive", "Deceased"]},
        "patronus": _NAME,
        "bogart": _NAME,
    }
)


def _characters() -> Iterable[Question]:
    rng = Random(SEED)
    while True:
        name = f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}"
        question = f"{name} is a character of a tale about a school of magic. Give all data of {name} as JSON."
        yield Question(question, _json(_CHARACTER_SCHEMA))


def _extractions() -> Iterable[Question]:
    """The embedded model's own held-out documents, each with a schema of its own."""
    for exercise in exercises(SEED, held_out=True):
        if len(exercise.expected) >= 3 and not exercise.tools and None not in exercise.expected.values():
            schema = _object({name: _type_of(value) for name, value in exercise.expected.items()})
            yield Question(exercise.question, _json(schema))


def _type_of(value: Value | None) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case list():
            return {"type": "array", "items": {"type": "string"}, "maxItems": 4}
        case _:
            return {"type": "string"}


def _free() -> Iterable[Question]:
    """Letters and spaces, more than the answer may have tokens for: no byte of it is ever decided."""
    rng = Random(SEED)
    while True:
        question = f"Tell me about {rng.choice(words.CITIES)} and {rng.choice(words.JOBS)}."
        yield Question(question, GrammarSpec(GrammarKind.REGEX, "[a-z ]{600}"))


_MAKERS: Mapping[str, tuple[Callable[[], Iterable[Question]], int]] = {
    CHARACTER: (_characters, 192),
    EXTRACTION: (_extractions, 128),
    FREE: (_free, 48),
}
"""With the most tokens of an answer."""


def _maker(name: str) -> tuple[Callable[[], Iterable[Question]], int]:
    if name not in _MAKERS:
        raise UnknownTask(f"there is no task {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name]
