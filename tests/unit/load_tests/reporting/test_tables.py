from __future__ import annotations

from pathlib import Path

import pytest

from deployments.reporting.report import BenchReport, Target
from load_tests.errors import UnknownFigure
from load_tests.reporting.tables import (
    HEADLINE,
    PAGES,
    ROOT,
    Figure,
    headline,
    read_pages,
    read_results,
    refreshed,
    write_pages,
)

README = "before\n<!-- bench: headline -->\nstale\n<!-- /bench -->\nafter\n"
RESULTS = ROOT / "load_tests" / "results"


def report(command: str = "python -m load_tests.grammar folder --rounds 3") -> BenchReport:
    targets = [Target.at_most("hit|miss", 0.25, 1, "ms"), Target.at_least("speed-up", 2.0, 3, "×")]
    return BenchReport.here(command, ["xgrammar"], targets, [{"part": "summary"}])


def test_the_headline_is_chosen_by_result_and_target() -> None:
    figures = [Figure("grammar", "speed-up", "how fast"), Figure("absent", "speed-up", "not measured here")]
    text = refreshed(README, headline({"grammar": report()}, figures))
    assert "| how fast | 2 × | at least 3 | **no** | A | [`python -m load_tests.grammar folder`](docs/benchmarks/grammar.md) |\n" in text
    assert "In all, 1 of 2 promises are kept" in text
    assert text.startswith("before\n<!-- bench: headline -->\n|")
    assert text.endswith("\n<!-- /bench -->\nafter\n")
    assert "stale" not in text
    assert "not measured here" not in text


def test_each_machine_has_a_letter() -> None:
    elsewhere = BenchReport(
        "maskcast simulate", {"processor": "other", "cores": 8, "memory_gib": 64}, {}, report().targets, [], "", "2026-11-27"
    )
    figures = [Figure("grammar", "speed-up", "here"), Figure("simulation", "speed-up", "there"), Figure("grammar", "hit|miss", "here too")]
    text = headline({"grammar": report(), "simulation": elsewhere}, figures)
    assert "B: other, 8 cores, 64 GiB" in text
    assert [line.split(" | ")[4] for line in text.splitlines()[2:5]] == ["A", "B", "A"]


def test_a_figure_that_a_result_does_not_have_is_named() -> None:
    with pytest.raises(UnknownFigure, match=r"'latency', only 'hit\|miss', 'speed-up'"):
        headline({"grammar": report()}, [Figure("grammar", "latency", "how slow")])


def test_a_result_that_nobody_knows_gets_a_page_too(tmp_path: Path) -> None:
    report("python -m load_tests.new").write(tmp_path / "new_thing.json")
    (tmp_path / "new_thing.png").touch()
    found = read_pages(tmp_path)
    assert set(found) == {"README.md", "gpu.md", "new_thing.md"}
    assert "# New thing\n\n![New thing](../../load_tests/results/new_thing.png)\n\n`python -m load_tests.new` on " in found["new_thing.md"]
    assert "| hit\\|miss | 0.25 ms | at most 1 | yes |\n| speed-up | 2 × | at least 3 | **no** |\n" in found["new_thing.md"]
    assert "| [New thing](new_thing.md) | 1 of 2 |" in found["README.md"]
    assert "- [New thing](new_thing.md): speed-up: 2 ×, promised at least 3\n" in found["README.md"]


def test_a_conformance_page_has_ways_and_keywords(tmp_path: Path) -> None:
    counts = {"correct": 3, "refused": 1, "over-constrained": 0, "under-constrained": 0}
    rows = [{"way": "maskcast", "cases": 4, **counts}, {"keyword": "enum", "schemas": 2, "refused_schemas": 1, "cases": 4, **counts}]
    BenchReport.here("maskcast grammar conformance folder", [], [], rows).write(tmp_path / "conformance.json")
    text = read_pages(tmp_path)["conformance.md"]
    assert "| maskcast | 4 | 3 | 1 | 0 | 0 |" in text
    assert "| enum | 1 of 2 | 4 | 3 | 1 | 0 | 0 |" in text


def test_a_conformance_page_tells_drafts_apart(tmp_path: Path) -> None:
    counts = {"correct": 3, "refused": 1, "over-constrained": 0, "under-constrained": 0}
    rows = [{"draft": draft, "way": "maskcast", "cases": cases, **counts} for draft, cases in (("draft4", 4), ("draft7", 5))]
    BenchReport.here("maskcast grammar conformance folder", [], [], rows).write(tmp_path / "conformance.json")
    _, of_4, of_7 = read_pages(tmp_path)["conformance.md"].split("\n## ")
    assert of_4.startswith("draft4\n")
    assert "| maskcast | 4 | 3 | 1 | 0 | 0 |" in of_4
    assert of_7.startswith("draft7\n")
    assert "| maskcast | 5 | 3 | 1 | 0 | 0 |" in of_7


def test_a_page_goes_with_its_result(tmp_path: Path) -> None:
    write_pages(tmp_path, {"README.md": "index", "old.md": "figures"})
    write_pages(tmp_path, {"README.md": "another index"})
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"README.md": "another index"}


def test_the_pages_show_what_was_measured() -> None:
    """Where this fails, `python -m load_tests.reporting.tables` writes them anew."""
    shown = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / PAGES).glob("*.md")}
    assert shown == read_pages(RESULTS)


def test_the_readme_shows_what_was_measured() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = headline(read_results(RESULTS))
    assert refreshed(readme, block) == readme
    assert block in readme


def test_every_figure_of_the_headline_has_been_measured() -> None:
    assert {figure.result for figure in HEADLINE} <= set(read_results(RESULTS))


def test_an_ablation_names_what_breaks_in_each_scenario(tmp_path: Path) -> None:
    figures = {"scenario": "calm", "answers_per_s": 10.0, "latency_p99_ms": 9.0, "resident": 4.0, "compiled": 1, "fetched": 2}
    rows = [
        {"without": name, "seed": seed, "wait_p99_ms": wait, "rows_per_step": 3.0, "broken": broken, **figures}
        for name, seed, wait, broken in (
            ("nothing", 0, 1000.0, []),
            ("nothing", 1, 1200.0, []),
            ("hold", 0, 1500.0, ["calm: p99 wait"]),
            ("hold", 1, 1500.0, ["calm: p99 wait", "calm: mask rows"]),
        )
    ]
    BenchReport.here("maskcast simulate --ablate", ["numpy"], [], rows).write(tmp_path / "ablation.json")
    page = read_pages(tmp_path)["ablation.md"]
    assert "## calm\n\n| without | /s | p99 wait, ms |" in page
    assert "| nothing | 10 ±0 | 1100 ±100 | 9 ±0 | 4.0 ±0.0 | 3 ±0 | 3.0 ±0.0 |  |\n" in page
    assert "| p99 wait (2 ×); mask rows (1 ×) |\n" in page
