"""What vLLM answers with in an error's place is told under this service's codes, whole or as an event."""

from __future__ import annotations

import json

import pytest

from deployments.api.engine_errors import engine_error, error_body, with_codes

CODES = [(502, "reward_failed"), (504, "reward_timeout"), (404, "model_not_found"), (400, "invalid_request"), (500, "internal_error")]


def told(status: int) -> str:
    return json.dumps({"error": {"message": "late", "type": "vLLM's own", "param": None, "code": status}})


@pytest.mark.parametrize(("status", "code"), CODES)
def test_an_error_has_the_same_code_in_a_whole_answer_and_in_a_stream(status: int, code: str) -> None:
    assert engine_error(status, json.loads(told(status))).code == json.loads(error_body(told(status)))["error"]["code"] == code
    said, event, end = 'data: {"choices":[]}\n\n', f"data: {told(status)}\n\n", "data: [DONE]\n\n"
    assert with_codes(said + event + end) == f"{said}data: {error_body(told(status))}\n\n{end}"


def test_a_text_that_tells_of_an_error_is_left_as_it_is() -> None:
    choice = {"delta": {"content": f"data: {told(502)}"}}
    text = f"data: {json.dumps({'choices': [choice]})}\n\n"
    assert with_codes(text) == text
