"""Choices that fail are replaced by right ones of later answers; those that are cut off are not judged."""

from __future__ import annotations

import json
from typing import Any

from deployments.api.checking.choices import CheckedChoices


def answer(*texts: str, cut: int | None = None) -> dict[str, Any]:
    choices = [
        {"index": index, "message": {"content": text}, "finish_reason": "length" if index == cut else "stop"}
        for index, text in enumerate(texts)
    ]
    return {"id": "a", "choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}


def contents(choices: CheckedChoices) -> list[str]:
    return [choice["message"]["content"] for choice in json.loads(choices.text())["choices"]]


def test_a_wrong_choice_is_replaced_by_a_right_one_of_a_later_answer() -> None:
    choices = CheckedChoices(per_prompt=3)
    choices.add(answer("a", "wrong", "wrong too"), [None, "no", "nor this"])
    assert choices.faults == ["no", "nor this"]
    choices.add(answer("wrong again", "b", "bad"), ["no", None, "no"])
    assert choices.faults == ["nor this"]
    choices.add(answer("c", "d", "e"), [None, None, None])
    assert not choices.faults
    assert contents(choices) == ["a", "b", "c"]
    told = json.loads(choices.text())
    assert [choice["index"] for choice in told["choices"]] == [0, 1, 2]
    assert told["usage"] == {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15}


def test_a_choice_is_not_replaced_by_the_answer_to_another_prompt() -> None:
    choices = CheckedChoices(per_prompt=2)
    choices.add(answer("a", "a", "b", "wrong"), [None, None, None, "no"])
    choices.add(answer("other a", "other a", "wrong", "wrong"), [None, None, "no", "no"])
    assert choices.faults == ["no"]
    choices.add(answer("wrong", "wrong", "other b", "wrong"), ["no", "no", None, "no"])
    assert contents(choices) == ["a", "a", "b", "other b"]


def test_a_choice_that_is_cut_off_is_not_judged() -> None:
    choices = CheckedChoices()
    asked = answer("a", "half an ans", "c", cut=1)
    assert choices.to_judge(asked) == ["a", "c"]
    choices.add(asked, [None, "no"])
    assert choices.faults == ["no"]


def test_the_text_of_a_completion_is_judged_and_nothing_is_no_text() -> None:
    assert CheckedChoices().to_judge({"choices": [{"text": "x"}, {"message": {"content": None}}]}) == ["x", ""]
