"""What engines took and said, as rows, lines of tables and promises."""

from __future__ import annotations

from itertools import product

from load_tests.lookahead.arms import APPX, CDLH, CDSL
from load_tests.lookahead.figures import GREEDY
from load_tests.lookahead.near_ties import Compared
from load_tests.lookahead.served.engines import PLAIN
from load_tests.lookahead.served.figures import (
    ALONE,
    MANY,
    MOST_AT_ONCE,
    TEXT_HEADINGS,
    row,
    served_rows,
    targets,
    text_lines,
    time_headings,
    time_lines,
)
from load_tests.lookahead.served.turns import Served

SECONDS = {GREEDY: 1.0, CDLH.name: 8.0, APPX.name: 6.0, CDSL.name: 4.0}
EQUAL = Compared(2, 2, 0)


def served(method: str, at_once: int, engine: str = PLAIN) -> Served:
    return Served(
        engine, method, at_once, [(1, 2, 3), (4,)], SECONDS[method] / at_once, {"forwards": 2, "target_steps": 2, "preemptions": 1}
    )


def rows() -> list[dict[str, object]]:
    ways = product(SECONDS, (ALONE, MANY, MOST_AT_ONCE))
    return [*(row(served(*way), EQUAL) for way in ways), row(served(CDSL.name, 32, "other"), EQUAL)]


def test_a_row_is_for_a_token() -> None:
    told = row(served(CDLH.name, 1), EQUAL)
    assert (told["ms"], told["forwards"], told["preemptions"]) == (2000, 0.5, 1)
    assert served_rows([told, {"method": GREEDY}]) == [told]


def test_times_stand_beside_greedys_and_those_of_cdlh() -> None:
    lines = time_lines(rows())
    assert all(len(line) == len(time_headings()) for line in lines)
    assert lines[-1][:4] == [CDSL.name, "1000.00", "4.00 × the time", "2.00 × as fast"]


def test_texts_are_counted_by_engine_and_answers_at_once() -> None:
    lines = text_lines(rows())
    assert all(len(line) == len(TEXT_HEADINGS) for line in lines)
    assert lines[0] == [PLAIN, "1", "8", "8", "0", "0", "4"]
    assert lines[-1] == ["other", "32", "2", "2", "0", "0", "1"]


def test_promises_hold_for_as_long_as_every_text_is_that_of_plain_loops() -> None:
    assert all(target.holds for target in targets(rows()))
    assert [target.name for target in targets([{**one, "preemptions": 0} for one in rows()]) if not target.holds] == [
        "preemptions, in an engine of few blocks"
    ]
    wrong = row(served(CDSL.name, 32, "other"), Compared(2, 1, 0))
    assert [target.name for target in targets([*rows(), wrong]) if not target.holds] == [
        "texts of engines that are not those of plain loops"
    ]
