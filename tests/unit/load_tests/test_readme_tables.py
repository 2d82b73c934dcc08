from __future__ import annotations

from pathlib import Path

from grammar_service.bench.report import BenchReport, Target
from load_tests.readme_tables import ARCHITECTURE_TABLES, ROOT, refreshed

README = "before\n<!-- bench: grammar -->\nstale\n<!-- /bench -->\nbetween\n<!-- bench: other -->\nkept\n<!-- /bench -->\nafter\n"


def report() -> BenchReport:
    targets = [Target.at_most("hit|miss", 0.25, 1, "ms"), Target.at_least("speed-up", 2.0, 3, "×")]
    return BenchReport.here("maskcast grammar bench folder", ["xgrammar"], targets, [])


def test_a_block_gets_its_table_and_the_rest_stays() -> None:
    text = refreshed(README, {"grammar": report()})
    assert text.startswith("before\n<!-- bench: grammar -->\n`maskcast grammar bench folder` on ")
    assert "| hit\\|miss | 0.25 ms | at most 1 | yes |\n" in text
    assert "| speed-up | 2 × | at least 3 | **no** |\n<!-- /bench -->\nbetween\n<!-- bench: other -->\nkept\n" in text
    assert "stale" not in text


def test_refreshing_twice_changes_nothing() -> None:
    reports = {"grammar": report()}
    assert refreshed(refreshed(README, reports), reports) == refreshed(README, reports)


def test_a_conformance_table_has_ways_and_keywords() -> None:
    counts = {"correct": 3, "refused": 1, "over-constrained": 0, "under-constrained": 0}
    rows = [{"way": "maskcast", "cases": 4, **counts}, {"keyword": "enum", "schemas": 2, "refused_schemas": 1, "cases": 4, **counts}]
    found = BenchReport.here("maskcast grammar conformance folder", [], [], rows)
    text = refreshed(README.replace("grammar", "conformance"), {"conformance": found})
    assert "| maskcast | 4 | 3 | 1 | 0 | 0 |" in text
    assert "| enum | 1 of 2 | 4 | 3 | 1 | 0 | 0 |" in text


def test_the_readme_has_a_block_for_every_result() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in Path(ROOT / "load_tests" / "results").glob("*.json"):
        assert f"<!-- bench: {path.stem} -->" in readme


def test_architecture_shows_what_was_measured() -> None:
    pages = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    reports = {path.stem: BenchReport.read(path) for path in (ROOT / "load_tests" / "results").glob("*.json")}
    assert refreshed(pages, reports, ARCHITECTURE_TABLES) == pages
    assert "<!-- bench: mask_bytes -->" in pages
