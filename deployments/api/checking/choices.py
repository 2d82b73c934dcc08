"""The choices of one answer, of which those that fail their check are asked for again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
UNFINISHED = "length"
"""Why a choice ended that nobody takes for complete."""


class CheckedChoices:
    """Answers to one request come one after another, each with all choices, until every choice of the first one is right, or has been
    replaced by a right one of a later answer. A choice that is cut off by its number of tokens says so itself, and is as right as one that
    is not checked. `per_prompt`: choices of one prompt, of which a request for completions may have several; they stand together."""

    def __init__(self, per_prompt: int = 1) -> None:
        self._per_prompt = per_prompt
        self._answer: dict[str, Any] = {}
        self._wrong: dict[int, str] = {}

    @property
    def faults(self) -> list[str]:
        """What is wrong with the choices that are still wanted."""
        return list(self._wrong.values())

    def to_judge(self, answer: Mapping[str, Any]) -> list[str]:
        """The texts of the finished choices, in their order."""
        return [_text(choice) for choice in answer["choices"] if _is_finished(choice)]

    def add(self, answer: dict[str, Any], faults: Sequence[str | None]) -> None:
        """`faults` are those of `to_judge`."""
        left = iter(faults)
        told = [(choice, next(left) if _is_finished(choice) else None) for choice in answer["choices"]]
        if not self._answer:
            self._answer = answer
            self._wrong = {index: fault for index, (_, fault) in enumerate(told) if fault is not None}
            return
        right = {index: choice for index, (choice, fault) in enumerate(told) if fault is None}
        for index in list(self._wrong):
            prompt = index // self._per_prompt
            found = next((other for other in right if other // self._per_prompt == prompt), None)
            if found is not None:
                del self._wrong[index]
                self._answer["choices"][index] = {**right.pop(found), "index": index}
        self._count(answer)

    def text(self) -> str:
        return json.dumps(self._answer, ensure_ascii=False)

    def _count(self, answer: Mapping[str, Any]) -> None:
        """What all answers have cost."""
        usage, more = self._answer.get("usage"), answer.get("usage")
        if isinstance(usage, dict) and isinstance(more, dict):
            usage.update({name: usage.get(name, 0) + more.get(name, 0) for name in _COUNTED})


def _is_finished(choice: Mapping[str, Any]) -> bool:
    return choice.get("finish_reason") != UNFINISHED


def _text(choice: Mapping[str, Any]) -> str:
    """Of a chat's choice or of a completion's."""
    message = choice.get("message")
    return str((message.get("content") if isinstance(message, dict) else choice.get("text")) or "")
