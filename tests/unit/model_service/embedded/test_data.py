"""The synthetic exercises: reproducible, split for good, and answered by their own documents."""

from __future__ import annotations

import json
from itertools import islice

from model_service.embedded.evaluate import fields_of
from model_service.embedded.tasks import exercises


def test_a_seed_fixes_the_exercises() -> None:
    assert list(islice(exercises(1, held_out=False), 50)) == list(islice(exercises(1, held_out=False), 50))
    assert list(islice(exercises(1, held_out=False), 50)) != list(islice(exercises(2, held_out=False), 50))


def test_nothing_that_is_held_out_is_trained_on() -> None:
    trained = {exercise.question for exercise in islice(exercises(1, held_out=False), 2000)}
    held = {exercise.question for exercise in islice(exercises(1, held_out=True), 200)}
    assert not trained & held


def test_the_answer_holds_what_is_expected() -> None:
    for exercise in islice(exercises(3, held_out=True), 300):
        assert json.dumps(fields_of(exercise.answer)) == json.dumps(exercise.expected)


def test_every_value_stands_in_its_document() -> None:
    for exercise in islice(exercises(4, held_out=True), 300):
        for value in exercise.expected.values():
            if isinstance(value, str):
                assert value in exercise.question
