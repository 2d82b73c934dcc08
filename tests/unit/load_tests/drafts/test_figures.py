"""What is asked for drafts, and what is made of the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from load_tests.drafts.figures import DRAFTS, JUMPS, NGRAM, STOCK, accepted_lines, accepted_rows, draw, lines, targets
from load_tests.drafts.tasks import ALL, EDIT, LONG, make
from load_tests.front_door.figures import STREAM
from load_tests.real_model.tasks import EXTRACTION


def row(side: str, task: str, per_s: float, pieces: float, clients: int = 1, turn: int = 0) -> dict[str, Any]:
    told = {"turn": turn, "side": side, "workload": task, "clients": clients, "answers": STREAM, "failed": 0, "wrong": 0}
    return {**told, "requests_per_s": per_s, "pieces_per_request": pieces}


@pytest.mark.parametrize("task", ALL)
def test_exercises_are_the_same_at_every_call(task: str) -> None:
    assert make(task, 4) == make(task, 4)


@pytest.mark.parametrize("task", [LONG, EDIT])
def test_answers_of_the_long_ones_repeat_their_prompts(task: str) -> None:
    (exercise,) = make(task, 1)
    schema = exercise.request["response_format"]["json_schema"]["schema"]
    Draft202012Validator.check_schema(schema)
    assert len(exercise.content) > 200


def test_promises_are_ratios_within_a_turn() -> None:
    rows = [
        row(STOCK, EXTRACTION, 1.0, 30),
        row(NGRAM, EXTRACTION, 2.5, 30),
        row(JUMPS, EXTRACTION, 2.0, 20),
        row(DRAFTS, EXTRACTION, 4.0, 9),
    ]
    rows += [row(JUMPS, "free", 2.0, 64, turn=1), row(DRAFTS, "free", 1.9, 64, turn=1)]
    found = {target.name: (target.value, target.holds) for target in targets(rows)}
    assert found == {
        "extraction, 1 client: requests a second, drafts / stock": (4.0, True),
        "extraction, 1 client: requests a second, drafts / stock, n-gram": (1.6, True),
        "extraction, 1 client: forwards a request, drafts / jumps alone": (0.45, True),
        "extraction, 1 client: requests a second, drafts / jumps alone": (2.0, True),
        "free, 1 client: requests a second, drafts / jumps alone": (0.95, False),
        "requests that were not answered": (0.0, True),
        "answers that are not what was asked for": (0.0, True),
    }


def test_accepted_drafts_are_told_by_where_they_come_from() -> None:
    counts = {"words": (40, 30), "forced": (10, 10)}
    page = "".join(
        f"# TYPE maskcast_engine_{name} counter\n"
        + "".join(f'maskcast_engine_{name}_total{{replica="a",source="{source}"}} {of[place]}\n' for source, of in counts.items())
        for place, name in enumerate(("drafts", "accepted_drafts"))
    )
    rows = [*accepted_rows(page, 0), *accepted_rows(page, 1)]
    assert accepted_lines(rows) == [
        ["forced text between others", "20", "100%"],
        ["whole values of the prompt or the answer so far", "80", "75%"],
    ]
    assert lines(rows) == []


def test_a_line_has_every_side_that_was_run() -> None:
    rows = [row(JUMPS, EXTRACTION, 2.0, 20), row(DRAFTS, EXTRACTION, 4.0, 9)]
    assert lines(rows) == [[EXTRACTION, "1", "–", "–", "–", "2.00", "4.00", "2.00 ×", "20.0 : 9.0"]]


def test_what_became_of_drafts_is_drawn(tmp_path: Path) -> None:
    rows = [
        {"turn": 0, "source": "prompt", "drafts": 100.0, "accepted": 60.0},
        {"turn": 0, "source": "end", "drafts": 10.0, "accepted": 9.0},
    ]
    draw(rows, tmp_path / "drafts.png")
    assert (tmp_path / "drafts.png").read_bytes().startswith(b"\x89PNG")
