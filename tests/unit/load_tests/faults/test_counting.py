"""What became of requests is counted so that nothing lost is called by another name."""

from __future__ import annotations

import json

import pytest

from load_tests.faults.__main__ import row, targets
from load_tests.faults.clients import CUT, FAILED, HUNG, UNANSWERED, WHOLE, outcome
from load_tests.faults.strikes import STRIKES, Strike

SPARED = Strike("spared", lambda _, __: None)
STRUCK = Strike("struck", lambda _, __: None, ends_connections=True)


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


def test_a_connection_may_end_with_what_was_struck_and_with_nothing_else() -> None:
    ends = {WHOLE: 10, FAILED: 1, CUT: 1, UNANSWERED: 1}
    spared, struck = row(SPARED, ends, 1.0, 2.0), row(STRUCK, ends, 1.0, 2.0)
    assert (spared["accepted"], spared["answered"], spared["failed"], spared["connections_struck"], spared["lost"]) == (13, 10, 1, 0, 2)
    assert (struck["connections_struck"], struck["lost"]) == (2, 0)


def test_what_hangs_is_lost_and_no_client_loses_two_connections_to_one_strike() -> None:
    assert row(STRUCK, {HUNG: 1}, 1.0, 2.0)["lost"] == 1
    assert row(STRUCK, {CUT: 7}, 1.0, 2.0)["lost"] == 2


def test_a_strike_after_which_not_all_are_answered_holds_no_promise() -> None:
    lost, back = targets([row(SPARED, {WHOLE: 1}, None, 2.0)])
    assert (lost.holds, back.holds) == (True, False)


def test_strikes_are_told_apart_by_their_names() -> None:
    assert len({each.name for each in STRIKES}) == len(STRIKES)
