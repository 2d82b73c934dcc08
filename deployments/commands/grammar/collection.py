"""A run over a collection of real schemas in the form of every benchmark, and on a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.conformance.collection import CHECKED, GRAMMARS, OURS, Findings
from grammar_service.conformance.collection_report import (
    WELL_KNOWN,
    Explanation,
    broken,
    causes,
    counts,
    how_served,
    otherwise,
    refusals,
    unserved,
)

PACKAGES = ("xgrammar", "llguidance", "jsonschema")
COLUMNS = ("served", "valid_accepted", "valid_reordered", "invalid_rejected", "invalid_accepted", "correct")
WAYS = (OURS, CHECKED, *(way for way in GRAMMARS if way != OURS))
SERVED_PERCENT = 92.0


def collection_bench(command: str, findings: Findings) -> BenchReport:
    """Rows: one a way, a reason to set schemas apart, a well-known schema, a cause of refusals, a refused schema, an instance that is
    judged otherwise than it is kept (of the libraries alone: how many, by explanation)."""
    rows = [*_ways(findings), *_apart(findings), *_well_known(findings), *_causes(findings), *_refused(findings), *_otherwise(findings)]
    return BenchReport.here(command, PACKAGES, collection_targets(findings), rows)


def collection_targets(findings: Findings) -> list[Target]:
    ours = counts(findings, OURS)
    alone = max(counts(findings, way).correct for way in GRAMMARS if way != OURS)
    wrong = [found for found in otherwise(findings, CHECKED) if not found.valid and found.explanation is Explanation.NONE]
    return [
        Target.at_least("schemas served by masks alone", 100 * ours.served / max(1, ours.schemas), SERVED_PERCENT, "%"),
        Target.at_most("schemas refused with `unenforceable: check`, but for broken ones", len(unserved(findings)), 0, "schemas"),
        Target.at_most("invalid instances accepted that a validator rejects", len(wrong), 0, "instances"),
        Target.at_least("instances judged correctly, against the better library alone", ours.correct, alone + 1, "instances"),
    ]


def _ways(findings: Findings) -> list[Row]:
    return [{"way": way, **asdict(count), "correct": count.correct} for way in WAYS for count in [counts(findings, way)]]


def _apart(findings: Findings) -> list[Row]:
    rows: list[Row] = [{"apart": why.value, "schemas": count} for why, count in Counter(findings.apart.values()).most_common()]
    return [*rows, {"no_schema": "by the meta-schema of its dialect", "schemas": len(broken(findings)), "names": broken(findings)}]


def _well_known(findings: Findings) -> list[Row]:
    found = [(name, how_served(findings, name)) for name in WELL_KNOWN]
    return [{"well_known": name, "served": how[0], "because": how[1]} for name, how in found if how is not None]


def _causes(findings: Findings) -> list[Row]:
    rows: list[Row] = [{"cause": cause, "schemas": count, "example": name} for cause, count, name in causes(findings)]
    return rows + [{"cause_with_check": cause, "schemas": count, "example": name} for cause, count, name in causes(findings, CHECKED)]


def _refused(findings: Findings) -> list[Row]:
    checked = {name for name, _ in refusals(findings, CHECKED)}
    return [
        {"refused": name, "pointer": judged.pointer, "message": judged.refused, "served_with_check": name not in checked}
        for name, judged in refusals(findings, OURS)
    ]


def _otherwise(findings: Findings) -> list[Row]:
    rows: list[Row] = [
        {"instance": found.case, "schema": found.schema, "valid": found.valid, "explanation": found.explanation.value}
        for found in otherwise(findings, CHECKED)
    ]
    for way in WAYS:
        kinds = Counter((found.valid, found.explanation) for found in otherwise(findings, way))
        rows += [
            {"otherwise": way, "valid": valid, "explanation": explanation.value, "instances": count}
            for (valid, explanation), count in sorted(kinds.items())
        ]
    return rows


def show_collection(findings: Findings, report: BenchReport, console: Console) -> None:
    """Counts of each way, causes of refusals, instances that are judged otherwise, and the targets."""
    table = Table("", "schemas", "instances", *(name.replace("_", " ") for name in COLUMNS))
    for row in report.rows:
        if "way" in row:
            table.add_row(str(row["way"]), str(row["schemas"]), str(row["valid"] + row["invalid"]), *(str(row[name]) for name in COLUMNS))
    console.print(table)
    for way in (OURS, CHECKED):
        reasons = Table("refused because", "schemas", "as", title=way, title_justify="left")
        for cause, count, name in causes(findings, way):
            reasons.add_row(cause, str(count), name)
        console.print(reasons)
    for found in otherwise(findings, CHECKED):
        kept = "valid, rejected" if found.valid else "invalid, accepted"
        console.print(f"{kept}: {found.case}: {found.explanation}", markup=False, highlight=False)
    console.print(report.table())
