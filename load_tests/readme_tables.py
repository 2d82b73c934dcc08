"""Writes the results of benchmarks into the README: `python -m load_tests.readme_tables`.

A block between `<!-- bench: NAME -->` and `<!-- /bench -->` gets the table of `load_tests/results/NAME.json`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from grammar_service.bench.report import BenchReport

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- /bench -->)", re.DOTALL)
OUTCOMES = ("correct", "refused", "over-constrained", "under-constrained")


def refreshed(readme: str, reports: Mapping[str, BenchReport]) -> str:
    """The text with the table of every report that has a block in it; other blocks stay as they are."""

    def block(found: re.Match[str]) -> str:
        report = reports.get(found[2])
        return found[0] if report is None else f"{found[1]}{_TABLES.get(found[2], target_table)(report)}\n{found[4]}"

    return _BLOCK.sub(block, readme)


def target_table(report: BenchReport) -> str:
    """What was promised and measured, and on what."""
    rows = [[target.name, target.shown(), target.target, "yes" if target.holds else "**no**"] for target in report.targets]
    return "\n".join([_ran(report), "", *_table(["", "measured", "promised", "holds"], rows)])


def conformance_table(report: BenchReport) -> str:
    """The targets, each way of compiling, and each keyword."""
    ways = [[str(row["way"]), str(row["cases"]), *(str(row[name]) for name in OUTCOMES)] for row in report.rows if "way" in row]
    words = [
        [str(row["keyword"]), f"{row['refused_schemas']} of {row['schemas']}", str(row["cases"]), *(str(row[name]) for name in OUTCOMES)]
        for row in report.rows
        if "schemas" in row and "keyword" in row
    ]
    return "\n".join(
        [
            target_table(report),
            "",
            *_table(["all cases", "cases", *OUTCOMES], ways),
            "",
            *_table(["keyword", "schemas refused", "cases", *OUTCOMES], words),
        ]
    )


def _ran(report: BenchReport) -> str:
    machine = report.machine
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"
    return f"`{report.command}` on {where} ({packages}):"


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(heads), _line(["---"] * len(heads)), *map(_line, rows)]


def _line(cells: list[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


_TABLES: dict[str, Callable[[BenchReport], str]] = {"conformance": conformance_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--results", type=Path, default=ROOT / "load_tests" / "results")
    given = parser.parse_args()
    reports = {path.stem: BenchReport.read(path) for path in sorted(given.results.glob("*.json"))}
    given.readme.write_text(refreshed(given.readme.read_text(encoding="utf-8"), reports), encoding="utf-8")
    print(f"{given.readme}: tables of {', '.join(reports) or 'nothing'}")


if __name__ == "__main__":
    main()
