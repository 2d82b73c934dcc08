"""From rows to promises and pages."""

from __future__ import annotations

import pytest

from deployments.reporting.report import BenchReport
from load_tests.gpu.figures import forward_cells, gains, graph_cells, notes, pays_from, targets
from load_tests.gpu.page import page
from load_tests.gpu.plan import LLAMA_8B, Clock, Row

TIMES = {(1, 1): 4.0, (1, 2): 4.0, (1, 8): 8.0, (64, 1): 6.0, (64, 2): 12.6, (64, 8): 30.0, (256, 1): 10.0, (256, 2): 21.0, (256, 8): 90.0}
FORWARDS: list[Row] = [{"part": "forwards", "requests": b, "segment": m, "graph": "full", "ms": ms} for (b, m), ms in TIMES.items()]
WAYS = {"full": 4.0, "piecewise": 5.0, "eager": 9.0}
GRAPHS: list[Row] = [{"part": "graphs", "requests": 1, "segment": 8, "graph": way, "ms": ms} for way, ms in WAYS.items()]
KERNELS: list[Row] = [
    {"part": "kernel", "vocabulary": 9, "rows": 1, "type": "bf16", "masks": "one", "wrong": wrong, "ours_us": ours, "xgrammar_us": 4.0}
    for wrong, ours in ((0, 2.0), (0, 5.0))
]


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
    assert found == [(0, True), (1.25, False)]


def test_nothing_is_promised_of_what_did_not_run_to_its_end() -> None:
    rows: list[Row] = [*KERNELS, {"part": "kernel", "failed": "RuntimeError: lost"}, {"part": "apply", "wrong": 0, "waits": "it waits"}]
    values = [target.value for target in targets(rows)]
    assert values == [None, 1.25, 0, 1]
    assert notes(rows) == ["kernel: RuntimeError: lost"]


def test_lines_have_a_cell_for_each_segment() -> None:
    rows: list[Row] = [*FORWARDS[:-1], {"part": "forwards", "requests": 256, "segment": 8, "skipped": "no room"}]
    assert forward_cells(rows)[0] == ["1", "2", "4.00 (1 ×)", "4.00 (2 ×)", "8.00 (4 ×)"]
    assert forward_cells(rows)[2][-1] == ""
    assert graph_cells(GRAPHS) == [["1", "8", "4.00", "5.00", "9.00"]]


def test_the_page_says_what_was_not_measured() -> None:
    assert "**Not measured**" in page({})
    report = BenchReport("python -m load_tests.gpu", {"processor": "p", "cores": 1, "memory_gib": 2, "gpu": "A GPU"}, {}, [], FORWARDS)
    text = page({"a": report})
    assert "## A GPU\n" in text
    assert "Not measured" not in text
    assert "| 64 | 8 | 6.00 (1 ×) | 12.60 (0.95 ×) | 30.00 (1.6 ×) |" in text
    assert "Microseconds" not in text


def test_the_shape_is_that_of_an_8b_model() -> None:
    assert LLAMA_8B.size_bytes / 2 == pytest.approx(8.03e9, rel=0.01)


def test_a_clock_is_over_when_its_time_is() -> None:
    times = iter([0.0, 59.0, 60.0])
    clock = Clock(60, lambda: next(times))
    assert [clock.is_over, clock.is_over] == [False, True]
