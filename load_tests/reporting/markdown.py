"""What pages of results are put together from: tables, and on what a benchmark ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deployments.reporting.report import BenchReport


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, line by line."""
    return [_line(heads), _line(["---"] * len(heads)), *map(_line, rows)]


def target_table(report: BenchReport) -> list[str]:
    """What was measured, and what was promised."""
    return table(["", "measured", "promised", "holds"], [[of.name, of.shown(), of.target, holds(of.holds)] for of in report.targets])


def holds(kept: bool) -> str:
    return "yes" if kept else "**no**"


def kept(report: BenchReport) -> str:
    """How many of its promises a report keeps."""
    return f"{sum(target.holds for target in report.targets)} of {len(report.targets)}"


def machine(report: BenchReport) -> str:
    of = report.machine
    return f"{of['processor']}, {of['cores']} cores, {of['memory_gib']} GiB"


def ran(report: BenchReport) -> str:
    """The command as one can type it, the machine, the versions, the day and the commit."""
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"`{report.command}` on {machine(report)} ({packages}), {measured_at(report)}:"


def measured_at(report: BenchReport) -> str:
    return f"{report.day}, at `{report.commit}`" if report.commit else report.day


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
