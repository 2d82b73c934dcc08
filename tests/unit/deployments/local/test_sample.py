from __future__ import annotations

import json

import pytest

from deployments.errors import StartError
from deployments.local.sample import EXERCISE, MESSAGE, Answer, Extraction, check_answer, sample_request

GOOD = {"name": "Clara Novak", "age": 34, "job": "software developer", "city": "Lisbon"}


def event(text: str) -> str:
    return "data: " + json.dumps({"choices": [{"delta": {"content": text}}]})


def test_pieces_are_the_texts_of_the_events() -> None:
    role = 'data: {"choices": [{"delta": {"role": "assistant", "content": null}}]}'
    end = 'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}'
    answer = Answer()
    assert list(answer.pieces(iter([role, "", event("a"), ": comment", event("b"), end, "data: [DONE]"]))) == ["", "a", "b", ""]
    assert (answer.text, answer.finish) == ("ab", "length")


def test_a_stream_that_ends_early_is_an_error() -> None:
    with pytest.raises(StartError, match="cut off"):
        list(Answer().pieces(iter([event("a")])))


def test_an_error_in_the_stream_is_told() -> None:
    with pytest.raises(StartError, match="out of memory"):
        list(Answer().pieces(iter(['data: {"error": {"message": "out of memory"}}'])))


def test_an_answer_that_follows_the_schema_passes() -> None:
    check_answer(json.dumps(GOOD), EXERCISE.schema)


@pytest.mark.parametrize("answer", ["", "{", json.dumps({**GOOD, "age": "34"}), json.dumps({**GOOD, "more": 1}), "{}"])
def test_an_answer_that_breaks_the_schema_is_an_error(answer: str) -> None:
    with pytest.raises(StartError, match="schema"):
        check_answer(answer, EXERCISE.schema)


@pytest.mark.parametrize("extraction", [EXERCISE, MESSAGE])
def test_the_request_constrains_the_answer_strictly(extraction: Extraction) -> None:
    constraint = sample_request("m", extraction)["response_format"]["json_schema"]
    assert constraint["strict"] is True
    assert constraint["schema"]["required"] == list(extraction.kinds)
