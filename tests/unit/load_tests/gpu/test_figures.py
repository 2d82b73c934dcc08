"""From rows to promises and pages."""

from __future__ import annotations

import pytest

from deployments.reporting.report import BenchReport
from load_tests.gpu.__main__ import PARTS
from load_tests.gpu.figures import forward_cells, free_from, gains, graph_cells, notes, overlap_cells, pays_from, targets
from load_tests.gpu.page import page
from load_tests.gpu.plan import FULL, LLAMA_8B, Clock
from load_tests.gpu.rows import Row
from load_tests.overlap.figures import between_forwards, wins
from load_tests.reporting.tables import ROOT, read_results

TIMES = {(1, 1): 4.0, (1, 2): 4.0, (1, 8): 8.0, (64, 1): 6.0, (64, 2): 12.6, (64, 8): 30.0, (256, 1): 10.0, (256, 2): 21.0, (256, 8): 90.0}
FORWARDS: list[Row] = [{"part": "forwards", "requests": b, "segment": m, "graph": "full", "ms": ms} for (b, m), ms in TIMES.items()]
RESULTS = ROOT / "load_tests" / "results"
WAYS = {"full": 4.0, "piecewise": 5.0, "eager": 9.0}
GRAPHS: list[Row] = [{"part": "graphs", "requests": 1, "segment": 8, "graph": way, "ms": ms} for way, ms in WAYS.items()]
XGRAMMAR = {"xgrammar_wrong": 0, "xgrammar_us": 4.0}
KERNELS: list[Row] = [
    {"part": "kernel", "vocabulary": 9, "rows": 1, "type": "bf16", "masks": "one", "wrong": 0, "ours_us": ours, **XGRAMMAR}
    for ours in (2.0, 5.0)
]
FRAMES: list[Row] = [
    {"part": "apply", "vocabulary": 9, "rows": 2, "wrong": 0, "waits": None, "frame_bytes": 77, "host_us": 50.04, "step_us": 60.0}
]
WRITES: list[Row] = [{"part": "staged writes", "requests": 8, "segment": 4, "wrong": 0, "waits": "it waits", "host_us": 12.34}]
MACHINE: dict[str, str | float] = {"processor": "p", "cores": 1, "memory_gib": 2, "gpu": "A GPU"}


def test_a_segment_pays_where_one_forward_of_it_is_shorter_than_one_for_each_token() -> None:
    assert gains(FORWARDS)[1, 8] == 4.0
    assert gains(FORWARDS)[64, 8] == pytest.approx(1.6)
    assert pays_from(FORWARDS) == {1: 2, 64: 8, 256: None}


def test_the_least_gain_of_few_requests_is_held_to_the_promise() -> None:
    (promise,) = targets(FORWARDS)
    assert promise.value == pytest.approx(1.6)
    assert not promise.holds


def test_kernels_are_held_to_the_worst_of_them() -> None:
    found = [(target.value, target.holds) for target in targets(KERNELS)]
    assert found == [(0, True), (0, True), (1.25, False)]


def test_a_kernel_that_masks_otherwise_is_no_measure() -> None:
    wrong, refused = {**KERNELS[0], "xgrammar_wrong": 3}, {**KERNELS[0], "xgrammar_not": "ValueError: no"}
    assert [target.holds for target in targets([wrong])] == [True, False, True]
    refused = {name: of for name, of in refused.items() if name not in XGRAMMAR}
    assert [target.value for target in targets([refused])] == [0, None, None]
    assert notes([refused]) == ["kernel: xgrammar: ValueError: no"]


def test_without_another_kernel_nothing_is_missed_against_it() -> None:
    alone: list[Row] = [{name: of for name, of in row.items() if name not in XGRAMMAR} for row in KERNELS]
    assert [target.holds for target in targets(alone)] == [True]
    assert notes(alone) == ["kernel: time, ours / xgrammar's, where it is worst: not measured, xgrammar's kernel was not there"]


def test_nothing_is_promised_of_what_did_not_run_to_its_end() -> None:
    rows: list[Row] = [*KERNELS, {"part": "kernel", "failed": "RuntimeError: lost"}, {"part": "apply", "wrong": 0, "waits": "it waits"}]
    values = [target.value for target in targets(rows)]
    assert values == [None, 0, 1.25, 0, 1]
    assert notes(rows) == ["kernel: RuntimeError: lost"]


def test_lines_have_a_cell_for_each_segment() -> None:
    rows: list[Row] = [*FORWARDS[:-1], {"part": "forwards", "requests": 256, "segment": 8, "skipped": "no room"}]
    assert forward_cells(rows)[0] == ["1", "2", "4.00 (1 ×)", "4.00 (2 ×)", "8.00 (4 ×)"]
    assert forward_cells(rows)[2][-1] == ""
    assert graph_cells(GRAPHS) == [["1", "8", "4.00", "5.00", "9.00"]]


def test_the_page_says_what_was_not_measured() -> None:
    assert "**Not measured**" in page({})
    text = shown(FORWARDS)
    assert "## A GPU\n" in text
    assert "Not measured" not in text
    assert "| 64 | 8 | 6.00 (1 ×) | 12.60 (0.95 ×) | 30.00 (1.6 ×) |" in text
    assert "Microseconds" not in text


def shown(rows: list[Row]) -> str:
    return page(
        {"a": BenchReport("python -m load_tests.gpu", MACHINE, {}, targets(rows), rows, "", "2026-11-27")}, read_results(RESULTS)["overlap"]
    )


@pytest.mark.parametrize("part", PARTS)
def test_the_page_says_of_a_part_that_it_failed(part: str) -> None:
    rows: list[Row] = [*FORWARDS, *GRAPHS, *KERNELS, *FRAMES, *WRITES]
    text = shown([*rows, {"part": part, "failed": "RuntimeError: lost"}, {"part": part, "skipped": "no time was left"}])
    assert f"- {part}: RuntimeError: lost\n- {part}: no time was left\n" in text
    assert "RuntimeError: lost" in shown([{"part": part, "failed": "RuntimeError: lost"}])


def test_the_page_has_frames_and_staged_writes() -> None:
    text = shown([*FRAMES, *WRITES])
    assert "| 9 | 2 | 77 | 0 |  | 50.0 | 60.0 |" in text
    assert "| 8 | 4 | 0 | it waits | 12.3 |" in text


def test_forwards_are_divided_by_what_the_core_takes_between_them() -> None:
    assert overlap_cells(FORWARDS, {1: 500.0, 8: 600.0, 256: 20000.0}) == [
        ["1", "4.00", "0.50", "8", "9"],
        ["256", "10.00", "20.00", "0.5", "3"],
    ]
    assert "| requests | G, ms | C, ms | G / C | win from r = |" in shown(FORWARDS)
    for g, c in ((4.0, 0.5), (10.0, 20.0), (3.3, 1.0), (1.0, 1.0)):
        free = free_from(g, c)
        low, high = wins(free, c) or (0, 0)
        assert low < g < high
        low, high = wins(free - 1, c) or (0, 0)
        assert not low < g < high


def test_forwards_are_of_batches_whose_time_between_them_is_known() -> None:
    known = between_forwards(read_results(RESULTS)["overlap"].rows)
    assert set(known) <= set(FULL.requests)


def test_the_shape_is_that_of_an_8b_model() -> None:
    assert LLAMA_8B.size_bytes / 2 == pytest.approx(8.03e9, rel=0.01)


def test_a_clock_is_over_when_its_time_is() -> None:
    times = iter([0.0, 59.0, 60.0])
    clock = Clock(60, lambda: next(times))
    assert [clock.is_over, clock.is_over] == [False, True]
