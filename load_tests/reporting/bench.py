"""`python -m load_tests.reporting.bench`: run the benchmarks whose results are older than the code they measure, then write the pages.

A result tells its commit. It is out of date when a later commit has changed one of the paths of its benchmark, so that a run that was
interrupted goes on with what is left.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.report import BenchReport
from load_tests.reporting import tables
from load_tests.reporting.benchmarks import BENCHMARKS

RESULTS = tables.ROOT / "load_tests" / "results"


def main(
    everything: Annotated[bool, typer.Option("--all", help="also those that are as new as the code")] = False,
    show: Annotated[bool, typer.Option("--list", help="only say which are out of date")] = False,
) -> None:
    """Run what is out of date, and write docs/benchmarks anew."""
    console = Console()
    old = dict(_chosen(everything))
    for name, why in old.items():
        console.print(f"{name}: {why}{', run by itself' if BENCHMARKS[name].apart else ''}")
    if show:
        return
    failed = [name for name in old if not BENCHMARKS[name].apart and not _ran(name, console)]
    tables.main([])
    raise typer.Exit(bool(failed))


def _chosen(everything: bool) -> Iterator[tuple[str, str]]:
    for name, benchmark in BENCHMARKS.items():
        path = RESULTS / f"{name}.json"
        why = out_of_date(tables.ROOT, BenchReport.read(path).commit if path.is_file() else "", benchmark.measured())
        if why or everything:
            yield name, why or "asked for"


def out_of_date(repository: Path, commit: str, paths: list[str]) -> str:
    """Why a result of that commit is, "" if it is not."""
    if not commit:
        return "never measured"
    command = ["git", "-C", str(repository), "rev-list", "--count", f"{commit}..HEAD", "--", *paths]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        return f"commit {commit} is not known here"
    changes = int(found.stdout)
    return f"{changes} commits since {commit} changed what it measures" if changes else ""


def _ran(name: str, console: Console) -> bool:
    """Whether there is a new result; missed promises are one too."""
    result = RESULTS / f"{name}.json"
    before = result.stat().st_mtime_ns if result.is_file() else 0
    began = monotonic()
    subprocess.run([*BENCHMARKS[name].words, "--json", str(result)], cwd=tables.ROOT, check=False)
    written = result.is_file() and result.stat().st_mtime_ns > before
    console.print(f"{name}: {'written' if written else 'FAILED'} after {monotonic() - began:.0f} s")
    return written


if __name__ == "__main__":
    typer.run(main)
