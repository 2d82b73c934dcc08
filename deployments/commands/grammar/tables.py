"""What the grammar commands print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grammar_service.spec import SPACED_KINDS

if TYPE_CHECKING:
    from deployments.commands.grammar.trial import Trial
    from deployments.reporting.report import BenchReport
    from grammar_service.conformance import ConformanceReport
    from grammar_service.conformance.verdict import Tally
    from grammar_service.inspection import Inspection, Opinion

MOST_FAULTS = 12
MOST_DEVIATIONS = 20
MOST_FORCED = 400
_OUTCOMES = ("cases", "correct", "refused", "rejected", "accepted")


def show_check(file: Path, inspection: Inspection, console: Console) -> None:
    """The verdict, and each backend's faults at their JSON pointers, one a line."""
    spec = inspection.spec
    layout = f", {spec.whitespace} whitespace" if spec.kind in SPACED_KINDS else ""
    _print(console, f"[bold]{escape(str(file))}[/]: {spec.kind}, {len(spec.text):,} characters{layout}")
    for opinion in inspection.opinions:
        _print(console, f"{opinion.backend}: {_opinion(opinion, opinion.backend == inspection.served_by)}")
        width = max((len(fault.pointer or "") for fault in opinion.faults[:MOST_FAULTS]), default=0)
        for fault in opinion.faults[:MOST_FAULTS]:
            _print(console, f"  [cyan]{escape((fault.pointer or '').ljust(width))}[/]  {escape(fault.text)}")
        if len(opinion.faults) > MOST_FAULTS:
            _print(console, f"  and {len(opinion.faults) - MOST_FAULTS} more")
    for warning in inspection.warnings:
        instead = f" Did you mean `{warning.did_you_mean}`?" if warning.did_you_mean else ""
        _print(console, f"[yellow]warning[/]: [cyan]{escape(warning.pointer)}[/]  {escape(warning.message + instead)}")
    _print(console, _verdict(inspection))
    if inspection.left_out:
        places = ", ".join(f"[cyan]{escape(pointer) or 'the whole'}[/]" for pointer in inspection.left_out[:MOST_FAULTS])
        _print(console, f"Served with [bold]unenforceable: check[/], which leaves out and checks in the end: {places}")


def _print(console: Console, markup: str) -> None:
    """Lines are not broken, so that pointers can be searched for and copied."""
    console.print(markup, highlight=False, soft_wrap=True)


def _opinion(opinion: Opinion, serves: bool) -> str:
    if not opinion.faults:
        return "[green]enforces all of it[/]" + (", chosen" if serves else "")
    if all(fault.pointer is None for fault in opinion.faults):
        return "[red]does not take it[/]"
    count = len(opinion.faults)
    return f"[red]would weaken it[/] in {count} {'place' if count == 1 else 'places'}"


def _verdict(inspection: Inspection) -> str:
    if inspection.refusal is None:
        first = f", and by {inspection.first_by} until that has compiled" if inspection.first_by else ""
        return f"[bold green]served[/] by {inspection.served_by}{first}"
    if inspection.opinions:
        return "[bold red]refused[/]: no backend enforces all of it"
    at = f" at {escape(inspection.refusal.pointer)}" if inspection.refusal.pointer else ""
    return f"[bold red]refused[/]{at}: {escape(inspection.refusal.message)}"


def show_trial(file: Path, trial: Trial, console: Console) -> None:
    header = trial.header
    table = Table(show_header=False, title=f"{escape(str(file))} on {header.backend} {header.backend_version}", title_justify="left")
    expanded = f"{header.expanded_bytes:,} bytes" if header.expanded_bytes else "none"
    for name, value in (
        ("compiling", f"{header.compile_ms:.1f} ms"),
        ("sandbox and encoding included", f"{trial.answer_ms:.1f} ms"),
        ("loading, as expected", f"{header.load_ms:.1f} ms"),
        ("loading, measured here", f"{trial.load_ms:.1f} ms"),
        ("first mask", f"{trial.mask_ms:.2f} ms"),
        ("artifact", f"{trial.artifact_bytes:,} bytes"),
        ("tables, expanded", expanded),
        ("forced at the start", _forced(trial.forced)),
    ):
        table.add_row(name, value)
    console.print(table)


def _forced(text: bytes) -> str:
    if not text:
        return "nothing"
    shown = text.decode("utf-8", "backslashreplace")
    return escape(shown[:MOST_FORCED]) + (f" … ({len(text):,} bytes)" if len(shown) > MOST_FORCED else "")


def show_conformance(found: ConformanceReport, report: BenchReport, console: Console) -> None:
    """Outcomes by keyword, totals of each way to compile, what deviates and why, and the targets."""
    table = Table(
        "keyword", "schemas", *_OUTCOMES, title="by keyword; valid instances rejected, invalid ones accepted", title_justify="left"
    )
    for row in found.rows:
        table.add_row(row.keyword, str(row.schemas), *_counts(row.tally))
    console.print(table)
    totals = Table("all cases", *_OUTCOMES)
    for name, tally in found.totals.items():
        totals.add_row(name, *_counts(tally))
    console.print(totals)
    for deviation in found.deviations[:MOST_DEVIATIONS]:
        where = f"{deviation.keyword}: {deviation.group}: {deviation.case}"
        console.print(f"{deviation.outcome}, {deviation.reason or 'no reason known'}: {where}", markup=False, highlight=False)
    if len(found.deviations) > MOST_DEVIATIONS:
        console.print(f"and {len(found.deviations) - MOST_DEVIATIONS} more deviations (--json lists all)", highlight=False)
    console.print(report.table())


def _counts(tally: Tally) -> list[str]:
    return [str(tally.total), *(str(count) if count else "·" for count in tally.counts.values())]
