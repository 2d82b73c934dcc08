"""What first answers took, beside second ones."""

from __future__ import annotations

from typing import Any

from load_tests.first_answers.figures import REAL, TEKKEN, lines, slowest, targets


def row(vocabulary: str, name: str, first_ms: float, second_ms: float | None, status: int = 200) -> dict[str, Any]:
    return {"vocabulary": vocabulary, "schema": name, "bytes": 1234, "status": status, "first_ms": first_ms, "second_ms": second_ms}


ROWS = [
    row(REAL, "a", 110.0, 50.0),
    row(REAL, "b", 450.0, 50.0),
    row(REAL, "c", 80.0, 40.0),
    row(REAL, "refused", 30.0, None, 400),
    row(TEKKEN, "a", 900.0, 100.0),
]


def test_a_first_answer_counts_by_what_it_takes_more_than_the_second() -> None:
    assert lines(ROWS) == [
        [REAL, "3", "60 ms", "332 ms", "393 ms", "400 ms", "1", "1", "30 ms"],
        [TEKKEN, "1", "800 ms", "800 ms", "800 ms", "800 ms", "1", "0", "–"],
    ]
    assert [line[1:] for line in slowest(ROWS)][:2] == [["a", "1,234", "900 ms", "100 ms"], ["b", "1,234", "450 ms", "50 ms"]]


def test_the_middle_one_of_each_vocabulary_is_promised_and_that_each_is_answered() -> None:
    found = {target.name: (target.value, target.holds) for target in targets([*ROWS, row(REAL, "lost", 1.0, None, 503)])}
    assert found == {
        f"{REAL}: the first answer, p50, more than the second": (60.0, True),
        f"{TEKKEN}: the first answer, p50, more than the second": (800.0, False),
        "requests that were neither answered nor refused": (1, False),
    }
