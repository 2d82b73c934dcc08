from __future__ import annotations

import json
import math
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from deployments.reporting.report import BenchReport, Target, processor


@pytest.fixture
def report() -> BenchReport:
    targets = [Target.at_least("speed-up", 4.25, 3, "×"), Target.at_most("median", None, 5, "ms")]
    return BenchReport.here("maskcast grammar bench folder", ["xgrammar", "no-such-package"], targets, [{"case": "a", "ms": 1.5}])


def test_a_report_has_the_form_that_all_benchmarks_share(report: BenchReport, tmp_path: Path) -> None:
    report.write(tmp_path / "results" / "grammar.json")
    tree = json.loads((tmp_path / "results" / "grammar.json").read_text(encoding="utf-8"))
    assert list(tree) == ["command", "machine", "versions", "targets", "rows", "commit", "day"]
    assert tree["targets"][0] == {"name": "speed-up", "value": 4.25, "unit": "×", "target": "at least 3", "holds": True}
    assert tree["versions"]["no-such-package"] == "not installed"
    assert tree["machine"]["cores"] >= 1


def test_a_report_reads_back_as_it_was_written(report: BenchReport, tmp_path: Path) -> None:
    report.write(tmp_path / "grammar.json")
    assert BenchReport.read(tmp_path / "grammar.json") == report


@pytest.mark.parametrize(("value", "holds"), [(1.1, True), (1.11, False), (None, False), (math.nan, False), (math.inf, False)])
def test_at_most_holds_up_to_its_bound_and_never_without_a_measurement(value: float | None, holds: bool) -> None:
    assert Target.at_most("ratio", value, 1.1, "×").holds is holds


@pytest.mark.parametrize(("value", "holds"), [(10.0, True), (9.99, False), (None, False), (math.inf, False)])
def test_at_least_holds_from_its_bound_on(value: float | None, holds: bool) -> None:
    assert Target.at_least("ratio", value, 10, "×").holds is holds


def test_the_table_says_what_is_missed(report: BenchReport) -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(report.table())
    lines = shown.get().splitlines()
    assert any("speed-up" in line and "4.25 ×" in line and "holds" in line for line in lines)
    assert any("median" in line and "not measured" in line and "missed" in line for line in lines)


def test_a_published_report_is_shown_and_written_and_says_whether_all_holds(report: BenchReport, tmp_path: Path) -> None:
    console = Console(width=100)
    with console.capture() as shown:
        assert report.publish(console, tmp_path / "missed.json") == 1
        kept = replace(report, targets=report.targets[:1])
        assert kept.publish(console, None) == 0
    assert shown.get().count("speed-up") == 2
    assert BenchReport.read(tmp_path / "missed.json") == report
    assert [path.name for path in tmp_path.iterdir()] == ["missed.json"]


def test_processors_of_one_name_are_told_apart_by_their_vectors() -> None:
    one = "processor : 0\nmodel name : AMD EPYC\nflags : fpu avx avx2 avx512f{}\n\nprocessor : 1\n"
    assert processor(one.format(" avx512_bf16")) == "AMD EPYC with AVX-512 BF16"
    assert processor(one.format("")) == "AMD EPYC with AVX-512"
    assert processor("") == platform.machine()
