"""What became of requests is counted so that nothing lost is called by another name."""

from __future__ import annotations

import json

import pytest

from load_tests.faults.clients import CUT, FAILED, WHOLE, outcome


def chunk(text: str, reason: str | None = None) -> str:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}, 'finish_reason': reason}]})}\n\n"


def plain(text: str, reason: str) -> str:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": reason}]})


ERROR = json.dumps({"error": {"code": "engine_dead", "message": "it ended"}})


@pytest.mark.parametrize(
    ("status", "text", "stream", "wanted"),
    [
        (200, chunk("ab") + chunk("c", "stop") + "data: [DONE]\n\n", True, WHOLE),
        (200, chunk("ab") + chunk("c", "stop"), True, CUT),
        (200, chunk("ab") + "data: [DONE]\n\n", True, CUT),
        (200, chunk("ab") + chunk("c", "length") + "data: [DONE]\n\n", True, CUT),
        (200, chunk("ab") + f"data: {ERROR}\n\n", True, FAILED),
        (200, "", True, CUT),
        (200, plain("abc", "stop"), False, WHOLE),
        (200, plain("abc", "length"), False, CUT),
        (503, ERROR, False, FAILED),
        (503, ERROR, True, FAILED),
    ],
)
def test_an_answer_is_whole_or_says_why_not(status: int, text: str, stream: bool, wanted: str) -> None:
    assert outcome(status, text, stream) == wanted
