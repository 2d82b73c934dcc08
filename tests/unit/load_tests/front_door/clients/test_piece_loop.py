"""Pieces within a window, and what was lost."""

from __future__ import annotations

from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import Part
from load_tests.front_door.clients.piece_loop import counted


def piece(at_s: float, text: str) -> Part:
    return Part(at_s, b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % text.encode())


def test_pieces_count_by_when_they_come() -> None:
    came = counted([[Reply(200, [piece(0, "a"), piece(1, "bc")]), Reply(0, [piece(2, "d"), piece(9, "e")])]], 1, 3)
    assert (came.pieces, came.characters, came.failed) == (2, 3, 0)


def test_a_connection_that_ends_before_its_answer_has_failed() -> None:
    lost, under_way, busy = Reply(0, [piece(1, "a")]), Reply(0, [piece(2, "b")]), Reply(503)
    assert counted([[lost, under_way], [busy, under_way]], 0, 3).failed == 2
