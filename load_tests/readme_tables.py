"""Writes the results of benchmarks into README and ARCHITECTURE: `python -m load_tests.readme_tables`.

A block between `<!-- bench: NAME -->` and `<!-- /bench -->` gets the table of `load_tests/results/NAME.json`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from deployments import simulation
from grammar_service.bench.report import BenchReport
from load_tests import mask_bytes
from load_tests.peers import mask_figures

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- /bench -->)", re.DOTALL)
OUTCOMES = ("correct", "refused", "over-constrained", "under-constrained")


Tables = Mapping[str, Callable[[BenchReport], str]]


def refreshed(readme: str, reports: Mapping[str, BenchReport], tables: Tables | None = None) -> str:
    """The text with the table of every report that has a block in it; other blocks stay as they are. `tables`: those that are not
    of the targets alone, the README's by default."""
    made = _TABLES if tables is None else tables

    def block(found: re.Match[str]) -> str:
        report = reports.get(found[2])
        return found[0] if report is None else f"{found[1]}{made.get(found[2], target_table)(report)}\n{found[4]}"

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


def mask_table(report: BenchReport) -> str:
    """What the masks of a step come to on two nodes."""
    rows = [mask_bytes.cells(row) for row in report.rows if row.get("part") == "summary"]
    return "\n".join([_ran(report), "", *_table(list(mask_bytes.HEADINGS), rows)])


def simulation_table(report: BenchReport) -> str:
    """All figures, and which promises are not kept."""
    rows = [[str(row["scenario"]), str(row["policy"]), *simulation.cells(row)] for row in report.rows]
    missed = [f"- missed: {target.name}: {target.shown()}, promised {target.target}" for target in report.targets if not target.holds]
    kept = f"{len(report.targets) - len(missed)} of {len(report.targets)} promises are kept."
    return "\n".join([_ran(report), "", *_table(["", "", *simulation.FIGURES], rows), "", kept, *missed])


def mask_path_table(report: BenchReport) -> str:
    """The targets, and each cell of both sides."""
    rows = [mask_figures.cells(*pair) for pair in mask_figures.pairs(report.rows)]
    return "\n".join([target_table(report), "", *_table(list(mask_figures.HEADINGS), rows)])


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


_TABLES: Tables = {"conformance": conformance_table, "simulation": simulation_table}
ARCHITECTURE_TABLES: Tables = {"mask_bytes": mask_table, "mask_path": mask_path_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--architecture", type=Path, default=ROOT / "ARCHITECTURE.md")
    parser.add_argument("--results", type=Path, default=ROOT / "load_tests" / "results")
    given = parser.parse_args()
    reports = {path.stem: BenchReport.read(path) for path in sorted(given.results.glob("*.json"))}
    given.readme.write_text(refreshed(given.readme.read_text(encoding="utf-8"), reports), encoding="utf-8")
    pages = given.architecture.read_text(encoding="utf-8")
    given.architecture.write_text(refreshed(pages, reports, ARCHITECTURE_TABLES), encoding="utf-8")
    print(f"{given.readme}, {given.architecture}: tables of {', '.join(reports) or 'nothing'}")


if __name__ == "__main__":
    main()
