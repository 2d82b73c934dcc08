"""`python -m load_tests.reporting.bench`: run the benchmarks whose results are older than the code they measure, then write the pages.

A result names its commit. It is out of date when a later commit changed one of the paths that its benchmark measures. After an
interruption the next run therefore continues with the rest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.report import DIRTY, BenchReport
from load_tests.reporting import tables
from load_tests.reporting.benchmarks import BENCHMARKS

RESULTS = tables.ROOT / "load_tests" / "results"


def main(
    everything: Annotated[bool, typer.Option("--all", help="run all, also those that are up to date")] = False,
    show: Annotated[bool, typer.Option("--list", help="only list those that are out of date")] = False,
) -> None:
    """Run what is out of date, and write docs/benchmarks anew."""
    console = Console()
    stale = dict(_stale_benchmarks(everything))
    for name, why in stale.items():
        console.print(f"{name}: {why}{' (run it separately)' if BENCHMARKS[name].separate else ''}")
    if show:
        return
    failed = [name for name in stale if not BENCHMARKS[name].separate and not _run_benchmark(name, console)]
    tables.main([])
    raise typer.Exit(bool(failed))


def _stale_benchmarks(everything: bool) -> Iterator[tuple[str, str]]:
    for name, benchmark in BENCHMARKS.items():
        path = RESULTS / f"{name}.json"
        why = staleness(tables.ROOT, BenchReport.read(path).commit if path.is_file() else "", benchmark.measured_paths)
        if why or everything:
            yield name, why or "asked for"


def staleness(repository: Path, commit: str, paths: list[str]) -> str:
    """Why a result of that commit is out of date; "" if it is not."""
    if not commit:
        return "never measured"
    if commit.endswith(DIRTY):
        return "measured with changes that were not committed"
    command = ["git", "-C", str(repository), "rev-list", "--count", f"{commit}..HEAD", "--", *paths]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        return f"commit {commit} is not in this repository"
    changes = int(found.stdout)
    return f"commits since {commit} that changed what it measures: {changes}" if changes else ""


def _run_benchmark(name: str, console: Console) -> bool:
    """Returns whether it wrote a result, whether or not all targets hold."""
    result = RESULTS / f"{name}.json"
    before = result.stat().st_mtime_ns if result.is_file() else 0
    began = monotonic()
    subprocess.run([*BENCHMARKS[name].argv, "--json", str(result)], cwd=tables.ROOT, check=False)
    written = result.is_file() and result.stat().st_mtime_ns > before
    console.print(f"{name}: {'written' if written else 'FAILED'} after {monotonic() - began:.0f} s")
    return written


if __name__ == "__main__":
    typer.run(main)
