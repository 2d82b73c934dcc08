"""Whether fields of which a model is sure are right more often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployments.reporting.report import Row
from load_tests.real_model.confidence import FIELD, bins, chance, draw, fields, lines, targets
from load_tests.real_model.tasks import CLASSIFICATION, EXTRACTION, Exercise


def row(confidence: float, right: bool, task: str = EXTRACTION) -> Row:
    return {"kind": "field", "task": task, "field": "name", "confidence": confidence, "right": right}


def speed(kind: str, task: str, value: float) -> Row:
    return {"kind": kind, "task": task, "requests_per_s": value}


ROWS = [row(0.1, False), row(0.1, True), row(0.5, True), row(1.0, True), row(0.15, False)]


def test_a_field_is_right_or_wrong_and_has_its_confidence() -> None:
    exercise = Exercise("text", {}, {"name": "Ada", "age": 3})
    choice: dict[str, Any] = {
        "finish_reason": "stop",
        "message": {"content": '{"name": "ada", "age": 4}'},
        FIELD: {"/name": 0.5, "/age": 0.2},
    }
    told = list(fields(EXTRACTION, exercise, choice))
    assert [(one["field"], one["confidence"], one["right"]) for one in told] == [("name", 0.5, True), ("age", 0.2, False)]
    assert list(fields(EXTRACTION, exercise, choice | {"finish_reason": "length"})) == []


def test_the_chance_counts_pairs_and_ties_by_half() -> None:
    assert chance(ROWS) == pytest.approx((0.5 + 0 + 2 + 2) / 6)
    assert chance([row(0.5, True)]) is None


def test_bins_hold_every_field() -> None:
    found = list(bins(ROWS, EXTRACTION))
    assert [(count, round(mean, 3), round(right, 3)) for _, _, count, mean, right in found] == [(3, 0.117, 0.333), (1, 0.5, 1), (1, 1, 1)]
    assert lines(ROWS)[0] == ("extraction", "0 to 0.2", "3", "0.12", "0.33")


def test_speed_is_compared_by_its_median(tmp_path: Path) -> None:
    tasks = (EXTRACTION, CLASSIFICATION)
    rows = [*ROWS, *(row(0.5, False, CLASSIFICATION) for _ in range(2))]
    for task in tasks:
        rows += [speed("with", task, value) for value in (9.0, 10.0, 30.0)] + [speed("without", task, 10.0)]
    found = {target.name: target for target in targets(rows)}
    assert found["extraction: requests a second, asked for confidence / not"].value == 1
    assert not found["classification: a right field has more confidence than a wrong one"].holds
    draw(rows, tmp_path / "diagram.png")
    assert (tmp_path / "diagram.png").read_bytes().startswith(b"\x89PNG")
