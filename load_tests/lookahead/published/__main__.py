"""The paper's own tables, read again: `python -m load_tests.lookahead.published`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.report import BenchReport
from load_tests.lookahead.published.figures import published_rows, targets
from load_tests.lookahead.tables import PAIR_HEADINGS, pair_cells, shown


def main(json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None) -> None:
    """Compute the published speed-ups from the published calls, and the published calls from how often drafts pass."""
    console, rows = Console(), published_rows()
    console.print(shown("computed / published", PAIR_HEADINGS, [pair_cells(row) for row in rows]))
    raise typer.Exit(
        BenchReport.here("python -m load_tests.lookahead.published", ("maskcast",), targets(rows), rows).publish(console, json_out)
    )


if __name__ == "__main__":
    typer.run(main)
