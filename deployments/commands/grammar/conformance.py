"""A conformance run in the form of every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.conformance import ConformanceReport
from grammar_service.conformance.verdict import Outcome, Tally

OURS = "maskcast"
PACKAGES = ("xgrammar", "llguidance", "jsonschema")
CORRECT_PERCENT = 88.5
"""Of the cases of each draft."""


def conformance_bench(command: str, reports: Mapping[str | None, ConformanceReport]) -> BenchReport:
    """Rows: one a keyword, one a way of compiling (`way`), one a deviation, one a reason to refuse; with their draft (`draft`), if the
    reports are by draft."""
    targets = [target for draft, report in reports.items() for target in _targets(report, draft)]
    rows = [{"draft": draft, **row} if draft else row for draft, report in reports.items() for row in _rows(report)]
    return BenchReport.here(command, PACKAGES, targets, rows)


def _rows(report: ConformanceReport) -> list[Row]:
    return [*_keywords(report), *_ways(report), *_deviations(report)]


def _targets(report: ConformanceReport, draft: str | None) -> list[Target]:
    targets = conformance_targets(report)
    if draft is None:
        return targets
    ours = report.totals[OURS]
    share = Target.at_least("cases judged correctly", 100 * _correct(ours) / max(1, ours.total), CORRECT_PERCENT, "%")
    return [replace(target, name=f"{draft}: {target.name}") for target in (*targets, share)]


def conformance_targets(report: ConformanceReport) -> list[Target]:
    """Nothing invalid is accepted, every rejection has its reason, and neither library alone is right as often."""
    ours = report.totals[OURS]
    alone = max(_correct(tally) for name, tally in report.totals.items() if name.endswith("alone"))
    return [
        Target.at_most("invalid instances accepted", ours.counts[Outcome.UNDER], 0, "cases"),
        Target.at_most("valid instances rejected for no known reason", len(report.unexplained), 0, "cases"),
        Target.at_least("cases judged correctly, against the better library alone", _correct(ours), alone + 1, "cases"),
    ]


def _correct(tally: Tally) -> int:
    return tally.counts[Outcome.CORRECT]


def _keywords(report: ConformanceReport) -> list[Row]:
    return [
        {
            "keyword": row.keyword,
            "schemas": row.schemas,
            "refused_schemas": row.refused_schemas,
            "cases": row.tally.total,
            **_counts(row.tally),
        }
        for row in report.rows
    ]


def _ways(report: ConformanceReport) -> list[Row]:
    return [{"way": name, "cases": tally.total, **_counts(tally)} for name, tally in report.totals.items()]


def _deviations(report: ConformanceReport) -> list[Row]:
    found: list[Row] = [
        {"deviation": found.outcome.value, "keyword": found.keyword, "schema": found.group, "case": found.case, "reason": found.reason}
        for found in report.deviations
    ]
    return found + [{"refusal": message, "schemas": count} for message, count in report.refusals]


def _counts(tally: Tally) -> dict[str, int]:
    return {outcome.value: count for outcome, count in tally.counts.items()}
