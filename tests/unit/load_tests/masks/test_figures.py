"""What the benchmark of the mask path makes of its cells."""

from __future__ import annotations

import pytest

from load_tests.masks.figures import OURS, STOCK, MaskCell, StepCost, cells, pairs, row_of, targets
from load_tests.masks.scenarios import ALL, ONE, SOME


def cell(side: str, scenario: str = ONE, drafts: int = 0, workers: int = 1, less: float = 1.0) -> MaskCell:
    steps = [StepCost(0.012 / less, 0.001, 0.010, 0.160 / less, int(4_000_000 / less))] * 3
    return MaskCell(scenario, 256, drafts, workers, side, steps, cpu_s=0.384)


def test_a_row_has_milliseconds_and_processor_time_per_thousand_tokens() -> None:
    row = row_of(cell(STOCK))
    assert (row["engine_ms"], row["worker_ms"], row["cpu_s_per_1000_tokens"]) == (12.0, 160.0, 0.5)


def test_a_target_is_held_by_the_worst_of_its_cells() -> None:
    rows = [
        row_of(one)
        for workers, less in ((1, 30.0), (2, 6.0))
        for one in (cell(STOCK, workers=workers), cell(OURS, workers=workers, less=less))
    ]
    found = {target.name: target for target in targets(rows)}
    assert found[f"bytes a step and worker, stock by ours: {ONE}, K = 0"].value == pytest.approx(6.0, rel=0.01)
    assert not found[f"bytes a step and worker, stock by ours: {ONE}, K = 0"].holds
    assert found["the engine's thread, stock by ours: 256 requests, K = 0"].holds


def test_what_was_not_run_holds_nothing() -> None:
    assert all(target.value is None and not target.holds for target in targets([]))
    assert len(targets([])) == 10


def test_sides_of_a_cell_are_shown_together() -> None:
    rows = [row_of(one) for one in (cell(STOCK), cell(OURS, less=4.0), cell(OURS, SOME), cell(STOCK, ALL))]
    ((stock, ours),) = pairs(rows)
    assert cells(stock, ours)[:5] == [ONE, "256", "0", "1", "12.00 → 3.00"]
