"""`python -m load_tests.load FOLDER`: starts a service, drives scenarios at it with open arrivals, and writes a report with charts.

Exit code 0 only if every request got an answer of the service's own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.progress import Progress

from deployments.access.key_file import entry_text, new_key
from deployments.reporting.report import BenchReport, Target
from load_tests.load.arrivals import Rate
from load_tests.load.counted import Counted, settled_page
from load_tests.load.driving import Port, drive
from load_tests.load.report import Ran, page, row
from load_tests.load.scenarios import SCENARIOS, Scenario
from load_tests.reporting.running_service import PACKAGES, running_service

TENANTS = {"search": 2.0, "billing": 1.0}
"""And the weights of their keys."""


def main(
    folder: Annotated[Path, typer.Argument(help="report.html and report.json are written here")],
    seconds: Annotated[float, typer.Option(min=1, help="of each scenario")] = 60.0,
    rate: Annotated[float, typer.Option(min=0.1, help="requests a second that are usual; scenarios have multiples of it")] = 4.0,
    only: Annotated[str, typer.Option(help="the scenarios whose name has this in it")] = "",
) -> None:
    """Drive a service with mixed traffic, and draw what came of it."""
    chosen = [each for each in SCENARIOS if only in each.name]
    with _service() as (url, keys), Progress(console=Console(stderr=True)) as bar:
        port = Port(httpx.URL(url).host, httpx.URL(url).port or 80, keys)
        runs = [_run(url, port, scenario, rate, seconds, bar) for scenario in chosen]
    command = f"python -m load_tests.load FOLDER --seconds {seconds:g} --rate {rate:g}"
    rows = [row(ran) for ran in runs]
    lost = Target.at_most("requests without an answer", float(sum(each["lost"] for each in rows)), 0, "")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text(page(runs, command), encoding="utf-8")
    status = BenchReport.here(command, PACKAGES, [lost], rows).publish(Console(), folder / "report.json")
    typer.echo(f"written: {folder / 'report.html'}")
    raise typer.Exit(status)


def _run(url: str, port: Port, scenario: Scenario, rate: float, seconds: float, bar: Progress) -> Ran:
    key = next(iter(port.keys.values()))
    before = settled_page(url, key)
    task = bar.add_task(scenario.name, total=rate * seconds * _mean(scenario.rate))
    asked = asyncio.run(drive(port, scenario, rate, seconds, lambda: bar.advance(task)))
    bar.update(task, total=len(asked), completed=len(asked))
    return Ran(scenario, seconds, asked, Counted.between(before, settled_page(url, key)))


def _mean(rate: Rate) -> float:
    return sum(rate(share / 100) for share in range(100)) / 100


@contextmanager
def _service() -> Iterator[tuple[str, Mapping[str, str]]]:
    keys = {tenant: new_key() for tenant in TENANTS}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("".join(entry_text(key, tenant, ("generate", "metrics"), TENANTS[tenant]) for tenant, key in keys.items()))
        file.flush()
        with running_service({"http": {"metrics": "all", "api_keys_file": file.name}}) as url:
            yield url, keys


if __name__ == "__main__":
    typer.run(main)
