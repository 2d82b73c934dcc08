"""`python -m load_tests.front_door.pieces`: pieces a second through the whole door, from a replica that makes them without a model.

Proxy, ingress, replica and vLLM's front end are real; in place of the engine core every running request gets a token fifty times a second,
or as often as the replica comes to it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx
import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config import Settings, parse_settings
from deployments.reporting.report import BenchReport, Row
from load_tests.front_door.clients.messages import PieceCourse
from load_tests.front_door.clients.process import client_process
from load_tests.front_door.meter import Meter
from load_tests.front_door.pieces.figures import row, targets
from load_tests.front_door.processor_time import ProcessorTime
from load_tests.front_door.servers import HOST
from load_tests.reporting.running_service import PACKAGES, running_service

if TYPE_CHECKING:
    from ray import serve

TOKENS = 1500
"""Of one answer, half a minute at full speed."""
RAMP_S = 8.0


def main(
    clients: Annotated[int, typer.Option(min=1, help="that stream at a time")] = 256,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured in each run")] = 10.0,
    runs: Annotated[int, typer.Option(min=1)] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Count the pieces that reach the clients."""
    tree = {"model": {"max_num_seqs": clients, "max_ongoing_requests": max(256, clients)}}
    body = {
        "model": parse_settings(tree).model.served_name,
        "messages": [{"role": "user", "content": "Go on."}],
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "stream": True,
    }
    rows: list[Row] = []
    with client_process() as client, CaseProgress(Console(stderr=True)) as progress:
        processor_time = ProcessorTime()
        with running_service(tree, _engineless) as url:
            course = PieceCourse(HOST, httpx.URL(url).port or 80, json.dumps(body).encode(), clients, RAMP_S, seconds)
            for run in range(runs):
                meter = Meter(processor_time)
                came = client.pieces(course, meter.began, meter.ended)
                rows.append(row(run, came, meter.window, meter.used, meter.foreign_s))
                progress.say(str(rows[-1]))
                progress.show("runs", run + 1, runs)
    report = BenchReport.here(
        f"python -m load_tests.front_door.pieces --clients {clients} --seconds {seconds:g} --runs {runs}", PACKAGES, targets(rows), rows
    )
    raise typer.Exit(report.publish(Console(), json_out))


def _engineless(settings: Settings) -> serve.Application:
    # Ray reads the environment when it is imported.
    from load_tests.front_door.pieces.engineless import engineless

    return engineless(settings)


if __name__ == "__main__":
    typer.run(main)
