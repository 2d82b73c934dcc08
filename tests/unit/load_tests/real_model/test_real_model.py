"""Exercises with what is right in them, and what answers to them are worth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from load_tests.errors import UnknownTask
from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import OURS, STOCK
from load_tests.real_model.figures import AGAIN, WITHOUT_JUMPS, Worth, mean_95, targets, worth_rows
from load_tests.real_model.tasks import EXTRACTION, FREE, SUMMARY, TASKS, chat_body, fields_right, is_valid, make_exercises


@pytest.mark.parametrize("task", TASKS)
def test_exercises_are_the_same_for_the_same_seed(task: str) -> None:
    assert make_exercises(task, 5) == make_exercises(task, 5) != make_exercises(task, 5, seed=1)
    assert {len(exercise.expected) > 0 for exercise in make_exercises(task, 5)} == {task not in (SUMMARY, FREE)}


def test_an_unknown_task_is_told() -> None:
    with pytest.raises(UnknownTask, match="there is no 'poem'"):
        make_exercises("poem", 1)


@pytest.mark.parametrize("task", [task for task in TASKS if task not in (SUMMARY, FREE)])
def test_what_is_expected_is_right_valid_and_in_the_text(task: str) -> None:
    for exercise in make_exercises(task, 50):
        answer = json.dumps(exercise.expected)
        assert is_valid(exercise, answer)
        assert fields_right(exercise, answer) == len(exercise.expected)
        if task == EXTRACTION:
            assert all(value in exercise.content for value in exercise.expected.values() if isinstance(value, str))


def test_a_text_is_right_but_for_case_and_its_full_stop() -> None:
    (exercise,) = make_exercises(EXTRACTION, 1)
    name = str(exercise.expected["name"])
    assert [fields_right(exercise, text) for text in (json.dumps({"name": f" {name.upper()}."}), '{"name": 1}', "[]", "no")] == [1, 0, 0, 0]
    assert not is_valid(exercise, "no")


def test_a_body_is_what_an_openai_client_sends() -> None:
    (exercise,) = make_exercises(EXTRACTION, 1)
    body = chat_body(exercise, "m")
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["model"], body["messages"][0]["content"]) == ("m", exercise.content)


def answer(body: int, text: str, finish: str = "stop", status: int = 200) -> Answer:
    return Answer(body, status, text, finish, 1, None, 1.0)


def test_worth_is_counted_exercise_by_exercise_beside_stock_and_beside_no_jumps() -> None:
    exercises = make_exercises(EXTRACTION, 3)
    right = [json.dumps(exercise.expected) for exercise in exercises]
    ours = [answer(number, text) for number, text in enumerate(right)]
    stock = [answer(0, right[0]), answer(1, "{", "length"), answer(2, "", status=500)]
    worths = [Worth.of(side, EXTRACTION, exercises, answers) for side, answers in ((OURS, ours), (STOCK, stock), (WITHOUT_JUMPS, stock))]
    rows = worth_rows(worths)
    assert [(row["finished"], row["valid"], row["fields_right"]) for row in rows] == [(3, 3, 1.0), (1, 1, 0.3333), (1, 1, 0.3333)]
    assert (rows[0]["different"], rows[0]["more_right"]) == (2, 0.6667)
    assert all(target.holds for target in targets(rows))


def test_texts_that_differ_without_jumps_are_told_from_values_that_do() -> None:
    exercises = make_exercises(EXTRACTION, 3)
    texts = {
        WITHOUT_JUMPS: ['{"a": 1}', '{"a": 1}', '{"a"'],
        OURS: ['{"a":1}', '{"a": 2}', '{"a":'],
        AGAIN: ['{"a": 1}', '{"a": 1}', '{"a'],
    }
    rows = worth_rows([Worth.of(side, EXTRACTION, exercises, map(answer, range(3), found)) for side, found in texts.items()])
    assert [(row["different"], row["same_values"]) for row in rows] == [(None, None), (3, 1), (1, 0)]


@pytest.mark.parametrize(("values", "expected"), [([], (None, None)), ([1.0], (None, None)), ([1.0, 1.0], (1.0, 0.0))])
def test_a_mean_needs_two_values(values: list[float], expected: Any) -> None:
    assert mean_95(values) == expected


def test_an_interval_is_narrower_with_more_values() -> None:
    few, many = mean_95([0.0, 1.0] * 10)[1], mean_95([0.0, 1.0] * 1000)[1]
    assert few is not None
    assert many is not None
    assert few > 9 * many
