from __future__ import annotations

from pathlib import Path

import pytest

from load_tests.jump_forward.chart import draw
from load_tests.jump_forward.figures import CHARACTER, FREE, MASKCAST, STOCK, UNCONSTRAINED, Cell, ratios, targets


def cell(arm: str, run: int, whole_s: float, *, task: str = CHARACTER, batch: int = 1, seats: int = 30) -> Cell:
    return Cell(
        task=task,
        batch=batch,
        run=run,
        arm=arm,
        seconds=whole_s,
        forwards=seats,
        seats=seats,
        tokens=[30],
        first_s=[0.01],
        whole_s=[whole_s],
        same_text=1,
    )


def test_a_row_counts_by_request() -> None:
    two = Cell(CHARACTER, 2, 0, STOCK, 2.0, 40, 70, [30, 40], [0.1, 0.3], [1.0, 2.0], 2)
    row = two.row()
    assert (row["requests"], row["forwards"], row["forwards_per_request"], row["tokens_per_request"]) == (2, 40, 35, 35)
    assert (row["requests_per_s"], row["tokens_per_s"]) == (1, 35)
    assert (row["first_token_p50_ms"], row["latency_p50_ms"]) == (200, 1500)


def test_ratios_are_taken_within_a_run_and_their_median_over_runs() -> None:
    # The whole machine is slow in the second run: both arms are, and the ratio is what it was.
    cells = [cell(STOCK, 0, 1.0), cell(MASKCAST, 0, 0.5), cell(STOCK, 1, 9.0), cell(MASKCAST, 1, 3.0), cell(STOCK, 2, 1.0)]
    cells.append(cell(MASKCAST, 2, 0.4, seats=10))
    (found,) = ratios([one.row() for one in cells])
    assert (found.task, found.batch, found.arm) == (CHARACTER, 1, MASKCAST)
    assert found.latency == pytest.approx(2.5)
    assert found.throughput == pytest.approx(2.5, rel=1e-3)
    assert found.forwards == pytest.approx(1)


def test_a_target_speaks_of_the_batch_that_it_names() -> None:
    cells = [cell(STOCK, 0, 3.0), cell(UNCONSTRAINED, 0, 2.0), cell(MASKCAST, 0, 1.0, seats=10)]
    found = {target.name: target for target in targets(ratios([one.row() for one in cells]), on_gpu=False)}
    assert found["character, forwards per request, stock / ours"].value == pytest.approx(3)
    assert found["character, 1 request, latency, stock / ours"].value == pytest.approx(3)
    assert found["character, 1 request, latency against unconstrained vLLM"].value == pytest.approx(2)
    assert not any("32 requests" in name for name in found)


def test_more_is_promised_on_a_gpu() -> None:
    cells = [cell(STOCK, 0, 2.0, batch=32), cell(MASKCAST, 0, 1.0, batch=32)]
    name = "character, 32 requests, throughput, ours / stock"
    for on_gpu, holds in ((False, True), (True, False)):
        (target,) = [one for one in targets(ratios([one.row() for one in cells]), on_gpu) if one.name == name]
        assert target.holds is holds


def test_the_worst_cell_counts_and_a_constraint_that_decides_nothing_need_not_beat_none() -> None:
    cells = [cell(STOCK, 0, 2.0), cell(UNCONSTRAINED, 0, 2.0), cell(MASKCAST, 0, 1.0)]
    cells += [cell(STOCK, 0, 1.0, task=FREE), cell(UNCONSTRAINED, 0, 0.9, task=FREE), cell(MASKCAST, 0, 1.1, task=FREE)]
    found = {target.name: target for target in targets(ratios([one.row() for one in cells]), on_gpu=False)}
    assert found["worst of all tasks and batches, latency"].value == pytest.approx(1 / 1.1)
    assert not found["worst of all tasks and batches, latency"].holds
    assert not any(FREE in name and "unconstrained" in name for name in found)


def test_a_chart_is_drawn_of_whatever_was_run(tmp_path: Path) -> None:
    cells = [cell(STOCK, 0, 3.0), cell(UNCONSTRAINED, 0, 2.0), cell(MASKCAST, 0, 1.0)]
    draw(ratios([one.row() for one in cells]), tmp_path / "new" / "chart.png")
    assert (tmp_path / "new" / "chart.png").read_bytes().startswith(b"\x89PNG")
