"""`python -m load_tests.schema_mechanisms schemastore`: how many schemas are served with each mechanism of the schema rooms left out.

Of a checkout of SchemaStore, and of folders of test suites and of MaskBench (`--also`), with any further members allowed. A schema is
served if some backend enforces all of it: nothing is compiled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.reporting.report import BenchReport, Row
from grammar_service.backends import select_backend
from grammar_service.conformance.isolation import in_children
from grammar_service.conformance.schemastore import read_schemastore
from grammar_service.conformance.suite import read_suite
from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError
from grammar_service.schema.json_text import Json
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from load_tests.schema_mechanisms.figures import targets
from load_tests.schema_mechanisms.mechanisms import MECHANISMS, Mechanism

PACKAGES = ("maskcast", "xgrammar", "llguidance")
MOST_S = 1800.0
"""Of a processor, for all schemas: a minute for SchemaStore's."""


def main(
    folder: Annotated[Path, typer.Argument(help="a checkout of SchemaStore", exists=True, file_okay=False)],
    also: Annotated[list[Path] | None, typer.Option(help="a folder of suites", exists=True, file_okay=False)] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Count the schemas that each mechanism serves."""
    sets = {folder.name: [schema.schema for schema in read_schemastore(folder) if schema.apart is None]}
    sets |= {suite.name: [group.schema for group in read_suite(suite)] for suite in also or []}
    rows: list[Row] = []
    works = [partial(row_of, mechanism, name, schemas) for mechanism in MECHANISMS for name, schemas in sets.items()]
    with CaseProgress(Console(stderr=True)) as progress:
        for _, row in in_children(works, dict[str, Any], MOST_S, os.cpu_count() or 1):
            if isinstance(row, (CompileTimeout, CompileFailed)):
                raise row
            progress.say(f"{row['left_out']}, {row['set']}: {row['served']} of {row['schemas']}")
            rows.append(row)
    suites = "".join(f" --also {suite}" for suite in also or [])
    report = BenchReport.here(f"python -m load_tests.schema_mechanisms {folder}{suites}", PACKAGES, targets(rows, folder.name), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def row_of(mechanism: Mechanism, name: str, schemas: Sequence[Json]) -> dict[str, Any]:
    mechanism.leave_out()
    return {"left_out": mechanism.name, "set": name, "schemas": len(schemas), "served": sum(map(_is_served, schemas))}


def _is_served(schema: Json) -> bool:
    try:
        select_backend(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), STANDARD, closed=False))
    except GrammarError:
        return False
    return True


if __name__ == "__main__":
    typer.run(main)
