from __future__ import annotations

from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import NONE, OURS, STOCK, STREAM, Cell
from load_tests.front_door.table import headings, lines


def test_a_line_has_both_sides() -> None:
    answers = [Answer(0, 200, "a", "length", 1, 0.25, 0.5)] * 4
    cells = [
        Cell(0, side, NONE, 8, STREAM, seconds, answers, {"ingress": 0.1}, 0.1, 0.5, 0) for side, seconds in ((STOCK, 1.0), (OURS, 2.0))
    ]
    (line,) = lines([cell.row() for cell in cells])
    assert line == ["none", "stream", "8", "4.0 : 2.0", "0.50 ×", "250 : 250", "500 : 500", "500 : 500", "25.0 : 25.0"]
    assert len(line) == len(headings())


def test_a_side_that_was_not_run_is_left_open() -> None:
    cell = Cell(0, OURS, NONE, 8, STREAM, 1.0, [], {}, 0.0, 0.5, 0)
    assert lines([cell.row()])[0][3:6] == ["– : 0.0", "–", "– : –"]
