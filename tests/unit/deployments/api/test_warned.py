from __future__ import annotations

import json

from deployments.api.warned import WarnedAnswer
from grammar_service.warning import ConstraintWarning
from model_service.replies import Head

WARNING = ConstraintWarning("unknown_field", "/max_token", "not heard", "max_tokens")
BODY = {"warnings": [{"code": "unknown_field", "pointer": "/max_token", "message": "not heard", "did_you_mean": "max_tokens"}]}


def test_a_whole_answer_has_its_warnings() -> None:
    answer = WarnedAnswer([WARNING])
    answer.item(Head(200, stream=False))
    assert json.loads(str(answer.item('{"id": 1}'))) == {"id": 1, "maskcast": BODY}


def test_the_first_event_of_a_stream_has_them_and_no_other() -> None:
    answer = WarnedAnswer([WARNING])
    answer.item(Head(200, stream=True))
    first, second = str(answer.item('data: {"id": 1}\n\ndata: {"id": 2}\n\n')).strip().split("\n\n")
    assert json.loads(first.removeprefix("data: ")) == {"id": 1, "maskcast": BODY}
    assert second == 'data: {"id": 2}'
    assert answer.item('data: {"id": 3}\n\n') == 'data: {"id": 3}\n\n'


def test_errors_and_answers_without_warnings_are_passed_on_as_they_are() -> None:
    failed = WarnedAnswer([WARNING])
    failed.item(Head(400, stream=False))
    assert failed.item('{"error": {}}') == '{"error": {}}'
    assert WarnedAnswer([]).item('{"id": 1}') == '{"id": 1}'
