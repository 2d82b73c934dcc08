"""Sets of values for fields of documents that the embedded model was never trained on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from transformers import PreTrainedTokenizerFast

from load_tests.canonical.distribution.figures import WITH, WITHOUT
from model_service.embedded.documents import KINDS, Field, Value
from model_service.embedded.tasks import Exercise, exercises
from model_service.embedded.train import prompt_of

_TRIES = 200
"""Draws of a field's values, some of which have only few."""


@dataclass(frozen=True, slots=True)
class Question:
    """`context`: the prompt and the answer up to the value of `field`. `sets`: by WITH and WITHOUT, the texts that may follow there, from
    the blank before the value to the character behind it, so that none begins with another."""

    context: tuple[int, ...]
    field: str
    sets: dict[str, tuple[str, ...]]


def questions(size: int, seed: int, tokenizer: PreTrainedTokenizerFast) -> Iterator[Question]:
    """Without end. `size`: values in a set. The true value is what the document says, which the model has learned to copy; the others are
    drawn as the documents' own values are."""
    chance = Random(seed)
    fields = {kind.name: kind.fields for kind in KINDS}
    for exercise in exercises(seed, held_out=True):
        if exercise.tools or "\\" in exercise.answer:
            continue
        texts = [field for field in fields.get(exercise.kind, ()) if isinstance(exercise.expected.get(field.name), str)]
        if texts and (found := _question(exercise, chance.choice(texts), size, chance, tokenizer)) is not None:
            yield found


def _question(exercise: Exercise, field: Field, size: int, chance: Random, tokenizer: PreTrainedTokenizerFast) -> Question | None:
    """None where the field has too few values."""
    true = exercise.expected[field.name]
    others = [*dict.fromkeys(value for _ in range(_TRIES) if (value := field.draw(chance)) != true)][:size]
    if len(others) < size:
        return None
    key, written = f'"{field.name}":', json.dumps(true)
    at = exercise.answer.index(key) + len(key)
    behind = exercise.answer[at + 1 + len(written)]
    context = [tokenizer.encode(part, add_special_tokens=False) for part in (prompt_of(exercise, tokenizer), exercise.answer[:at])]
    sets: dict[str, list[Value | None]] = {WITH: [true, *others[: size - 1]], WITHOUT: [*others]}
    texts = {kind: tuple(f" {json.dumps(value)}{behind}" for value in values) for kind, values in sets.items()}
    return Question((*context[0], *context[1]), field.name, texts)
