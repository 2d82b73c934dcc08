"""What the jump-forward benchmark asks of every engine: prompts with constraints, all drawn from seeds.

The shapes of *character* and *city* are those of SGLang's report on compressed finite state machines (LMSYS, February 2024): data of a
fictional character from a short prompt, data of a city from a long document. Free strings are bounded, so that a weak model ends its
answers too, and bounded by lengths, since xgrammar, which both engines are to use for schemas, is not trusted with patterns here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

from transformers import PreTrainedTokenizerBase

from deployments.constraints.tool_calls.tools import Tool, required_grammar
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from load_tests.errors import UnknownTask
from load_tests.jump_forward.city_guide import city_guide
from load_tests.jump_forward.figures import CHARACTER, CITY, EXTRACTION, FREE, TOOLS
from model_service.embedded import vocabulary as words
from model_service.embedded.documents import KINDS, Kind, Value
from model_service.embedded.tasks import Exercise, exercises

SEED = 17
GUIDE_TOKENS = 1500
"""Of a city's document; with its question and answer it fits a context of 2,048."""
FREE_TOKENS = 48

_NAME = {"type": "string", "maxLength": 16}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: the prompt's token ids and its constraint."""

    prompt: tuple[int, ...]
    spec: GrammarSpec


@dataclass(frozen=True, slots=True)
class Question:
    """One request as a user puts it: what the user says, and the constraint of the answer."""

    content: str
    spec: GrammarSpec


@dataclass(frozen=True, slots=True)
class Task:
    """As many asks as the largest batch that it is for; an answer ends after `max_tokens` at the latest."""

    name: str
    asks: tuple[Ask, ...]
    max_tokens: int


def make_questions(name: str, count: int, tokenizer: PreTrainedTokenizerBase) -> tuple[list[Question], int]:
    """`count` questions of one of TASKS without tools, those of `make_task`, and its most tokens of an answer. Raises UnknownTask."""
    maker = _maker(name)
    pairs = islice(maker.make(tokenizer), min(count, maker.largest))
    return [Question(str(messages["content"]), spec) for messages, spec in pairs], maker.max_tokens


def make_task(name: str, count: int, tokenizer: PreTrainedTokenizerBase) -> Task:
    """`count` asks of one of TASKS, the same ones at every call. Raises UnknownTask."""
    maker = _maker(name)
    pairs = islice(maker.make(tokenizer), min(count, maker.largest))
    return Task(name, tuple(Ask(tuple(_encoded(messages, tokenizer)), spec) for messages, spec in pairs), maker.max_tokens)


def _encoded(messages: dict[str, Any], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """With the model's chat template; a tokenizer without one gets the bare text."""
    content = str(messages["content"])
    if tokenizer.chat_template:
        turn = [{"role": "user", "content": content}]
        content = str(tokenizer.apply_chat_template(turn, tools=messages.get("tools"), tokenize=False, add_generation_prompt=True))
    return [int(token) for token in tokenizer.encode(content, add_special_tokens=False)]


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
_CITY_SCHEMA = _object(
    {
        "name": _NAME,
        "country": _NAME,
        "latitude": {"type": "integer", "minimum": -90, "maximum": 90},
        "population": {"type": "integer", "minimum": 10000, "maximum": 9999999},
        "top 3 landmarks": {"type": "array", "items": _NAME, "minItems": 3, "maxItems": 3},
    }
)

_Pairs = Iterable[tuple[dict[str, Any], GrammarSpec]]


def _characters(tokenizer: PreTrainedTokenizerBase) -> _Pairs:
    rng = Random(SEED)
    while True:
        name = f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}"
        question = f"{name} is a character of a tale about a school of magic. Give all data of {name} as JSON."
        yield {"content": question}, _json(_CHARACTER_SCHEMA)


def _cities(tokenizer: PreTrainedTokenizerBase) -> _Pairs:
    rng = Random(SEED)
    while True:
        guide = city_guide(rng, lambda text: len(tokenizer.encode(text, add_special_tokens=False)), GUIDE_TOKENS)
        fields = ", ".join(_CITY_SCHEMA["properties"])
        yield {"content": f"{guide}\n\nGive me {fields} as JSON."}, _json(_CITY_SCHEMA)


def _extractions(tokenizer: PreTrainedTokenizerBase) -> _Pairs:
    """The embedded model's own held-out documents, each with a schema of its own."""
    for exercise in exercises(SEED, held_out=True):
        if len(exercise.expected) >= 3 and not exercise.tools and None not in exercise.expected.values():
            yield {"content": exercise.question}, _json(_object({name: _type_of(value) for name, value in exercise.expected.items()}))


def _tool_calls(tokenizer: PreTrainedTokenizerBase) -> _Pairs:
    """One call of one of five tools, as `tool_choice: "required"` constrains it."""
    rng = Random(SEED)
    tools = [Tool(kind.tool, _object(_arguments(kind, rng)), strict=True) for kind in KINDS[:5]]
    spec = required_grammar(tools, False, STANDARD).spec
    listed = [{"type": "function", "function": {"name": tool.name, "parameters": tool.schema}} for tool in tools]
    for exercise in _recordings():
        yield {"content": exercise.question, "tools": listed}, spec


def _recordings() -> Iterable[Exercise]:
    recorded = {kind.name for kind in KINDS[:5]}
    return (exercise for exercise in exercises(SEED, held_out=True) if exercise.tools and exercise.kind in recorded)


def _arguments(kind: Kind, rng: Random) -> dict[str, Any]:
    return {field.name: _type_of(field.draw(rng), bounded=True) for field in kind.fields[:4]}


def _type_of(value: Value | None, *, bounded: bool = False) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "minimum": 0, "maximum": 99999} if bounded else {"type": "integer"}
        case float():
            return {"type": "number"}
        case list():
            return {"type": "array", "items": {"type": "string"}, "maxItems": 4}
        case _:
            return {"type": "string", "maxLength": 24} if bounded else {"type": "string"}


def _free(tokenizer: PreTrainedTokenizerBase) -> _Pairs:
    """Letters and spaces, more than the answer may have tokens for: no byte of it is ever decided."""
    rng = Random(SEED)
    while True:
        yield (
            {"content": f"Tell me about {rng.choice(words.CITIES)} and {rng.choice(words.JOBS)}."},
            GrammarSpec(GrammarKind.REGEX, "[a-z ]{600}"),
        )


@dataclass(frozen=True, slots=True)
class _Maker:
    """`largest` batch that makes sense: of long documents more would measure nothing but their prefill."""

    make: Callable[[PreTrainedTokenizerBase], _Pairs]
    max_tokens: int
    largest: int = 256


_MAKERS = {
    CHARACTER: _Maker(_characters, 192),
    CITY: _Maker(_cities, 160, largest=32),
    EXTRACTION: _Maker(_extractions, 128),
    TOOLS: _Maker(_tool_calls, 128),
    FREE: _Maker(_free, FREE_TOKENS),
}


def _maker(name: str) -> _Maker:
    if name not in _MAKERS:
        raise UnknownTask(f"there is no task {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name]
