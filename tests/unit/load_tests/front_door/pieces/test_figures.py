from __future__ import annotations

import json

import pytest

from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import Part
from load_tests.front_door.clients.messages import PiecesCame, WindowEnded
from load_tests.front_door.clients.piece_loop import counted
from load_tests.front_door.pieces.figures import BEFORE, TIMES, row, targets


def piece(at_s: float, text: str = "a") -> Part:
    return Part(at_s, b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n")


def test_pieces_count_by_when_they_come() -> None:
    ended, going_on = Reply(200, [piece(1.0), piece(2.0), piece(3.0, "ab")]), Reply(0, [piece(3.5), piece(9.0)])
    came = counted([[ended, going_on]], 2.0, 4.0)
    assert (came.pieces, came.characters, came.failed) == (3, 4, 0)
    assert came.gap_p99_s == pytest.approx(0.995)


def test_an_answer_that_is_a_refusal_has_failed() -> None:
    error = Reply(0, [piece(1.0), Part(1.5, b'data: {"error": {}}\n\n')])
    assert counted([[Reply(503, [Part(1.0, b"{}")])], [error]], 0.0, 2.0) == PiecesCame(1, 1, 2, None)


def test_a_row_says_what_each_second_had() -> None:
    found = row(0, PiecesCame(100, 150, 0, 0.02), WindowEnded(2.0, 0.5), {"ingress": 1.0}, 0.5)
    assert (found["pieces_per_s"], found["tokens_per_s"], found["gap_p99_ms"]) == (50, 75, 20)
    assert (found["processor_share"], found["client_share"]) == ({"ingress": 0.5}, 0.25)


def test_the_median_of_the_runs_is_held_against_what_was_before() -> None:
    rows = [row(run, PiecesCame(pieces, pieces, 0, None), WindowEnded(1.0, 0.0), {}, 0.5) for run, pieces in enumerate((1, 90_000, 80_000))]
    first, second = targets(rows)
    assert (first.value, first.target, first.holds) == (80_000, f"at least {TIMES * BEFORE:g}", True)
    assert second.holds
