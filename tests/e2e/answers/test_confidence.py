"""What a user sees of how sure the model was of each field."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.e2e.answers.test_jump_forward import FORMAT, QUESTION
from tests.e2e.service import MODEL, Service

ASKED: dict[str, Any] = {"response_format": FORMAT, "temperature": 0, "field_confidence": True}


def test_each_leaf_has_the_probability_of_what_was_chosen_there(service: Service) -> None:
    told = service.chat(QUESTION, **ASKED, logprobs=True).json()
    (choice,) = told["choices"]
    confidence = choice["field_confidence"]
    assert set(confidence) == {"/name", "/age"}
    assert all(0 < value <= 1 for value in confidence.values())
    # All that was not forced stands in one of the two.
    tokens = choice["logprobs"]["content"]
    assert math.prod(confidence.values()) == pytest.approx(math.exp(sum(token["logprob"] for token in tokens)), rel=2e-3)
    assert told["usage"]["completion_tokens_details"]["forced_tokens"] > 0
    assert service.chat(QUESTION, **ASKED).json()["choices"][0]["field_confidence"] == confidence


def test_a_stream_tells_it_at_its_end(service: Service) -> None:
    whole = service.chat(QUESTION, **ASKED).json()["choices"][0]
    create: Any = service.client().chat.completions.create
    stream = create(model=MODEL, messages=[{"role": "user", "content": QUESTION}], stream=True, extra_body=ASKED)
    choices = [chunk.choices[0].to_dict() for chunk in stream if chunk.choices]
    assert [choice["field_confidence"] for choice in choices if "field_confidence" in choice] == [whole["field_confidence"]]
    assert choices[-1]["field_confidence"] == whole["field_confidence"]
    assert not any(choice.get("logprobs") for choice in choices)


def test_a_completion_of_a_choice_is_one_leaf(service: Service) -> None:
    body = {"model": MODEL, "prompt": "One:", "max_tokens": 32, "temperature": 0, "field_confidence": True, "n": 1}
    answer = service.post("/v1/completions", {**body, "structured_outputs": {"choice": ["the first one", "the last one"]}}).json()
    (choice,) = answer["choices"]
    assert list(choice["field_confidence"]) == [""]
    assert choice["logprobs"] is None


def test_a_response_tells_it_too(service: Service) -> None:
    text = {"format": {"type": "json_schema", **FORMAT["json_schema"]}}
    body = {"model": MODEL, "input": QUESTION, "text": text, "temperature": 0, "field_confidence": True}
    response = service.post("/v1/responses", body).json()
    expected = service.chat(QUESTION, **ASKED).json()["choices"][0]["field_confidence"]
    assert response["field_confidence"] == expected
    create: Any = service.client().responses.create
    streamed = create(model=MODEL, input=QUESTION, text=text, temperature=0, stream=True, extra_body={"field_confidence": True})
    *_, last = streamed
    assert json.loads(last.to_json())["response"]["field_confidence"] == expected
