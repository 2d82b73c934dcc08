"""A Ray Data stage whose rows the service answers."""

from __future__ import annotations

import signal
from threading import Thread
from typing import Any, Literal

import ray
from pydantic import BaseModel

from deployments.client.ray_data import answer_rows
from tests.e2e.faults.test_faults import engine_cores
from tests.e2e.service import Service, wait_for

ROWS = 240
PROMPTS: dict[int, Any] = {7: [], 8: [{"role": "user", "content": [{"type": "text", "text": "Is it good?"}]}]}


class Answer(BaseModel):
    verdict: Literal["yes", "no"]
    reasons: list[Literal["price", "taste"]]


def test_every_row_has_its_answer_or_its_error_where_an_engine_dies_meanwhile(service: Service) -> None:
    service.wait_until_ready()
    rows = [{"id": number, "prompt": PROMPTS.get(number, "Is it good?")} for number in range(ROWS)]
    found: list[dict[str, Any]] = []

    def ask() -> None:
        asked = ray.data.from_items(rows, override_num_blocks=2)
        found.extend(answer_rows(asked, Answer, temperature=1, max_tokens=64).take_all())

    asking = Thread(target=ask)
    asking.start()
    wait_for(lambda: service.status().running > 4, 60, "rows to be asked")
    before = service.status().restarts
    for core in engine_cores(service):
        core.send_signal(signal.SIGKILL)
    asking.join(240)
    assert service.status().restarts == before + 1
    assert sorted(row["id"] for row in found) == list(range(ROWS))
    (refused,) = (row for row in found if row["error"] is not None)
    assert (refused["id"], refused["answer"]) == (7, None)
    assert all(Answer.model_validate(row["answer"]) for row in found if row["error"] is None)


def test_without_a_model_answers_are_texts(service: Service) -> None:
    asked = ray.data.from_items([{"question": "Left?"}])
    answered = answer_rows(asked, prompt="question", answer="side", choice=["left"])
    assert answered.take_all() == [{"question": "Left?", "side": "left", "error": None}]
