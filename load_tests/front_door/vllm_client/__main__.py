"""`python -m load_tests.front_door.vllm_client`: what vLLM's own benchmark client says of our server and of vLLM's.

Both serve the same model with the same engine arguments, one after the other on the whole machine, by turns. The questions, the clock and
the percentiles are those of vLLM's client, which also warms up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config import parse_settings
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.front_door.figures import NONE, SIDES, Found
from load_tests.front_door.servers import HOST, running
from load_tests.front_door.vllm_client.client import Drive, driven
from load_tests.reporting.running_service import PACKAGES

SCHEMA = "short schema"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "email": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "email", "tags"],
}
MORE: dict[str, dict[str, Any]] = {
    NONE: {},
    # The client asks every random question to go on behind its end, which a constraint has a say in.
    SCHEMA: {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}, "ignore_eos": False},
}
REQUESTS = {1: 40, 32: 320}
"""By how many clients there are at a time."""
THROUGHPUT, LATENCY = {NONE: 0.9, SCHEMA: 1.0}, {NONE: 1.1, SCHEMA: 1.0}


def main(
    turns: Annotated[int, typer.Option(min=1, help="of both servers")] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second, time to first token and latency with vLLM's own server, as vLLM's client sees them."""
    rows: list[Row] = []
    with CaseProgress(Console(stderr=True)) as progress:
        for row in _rows(turns):
            rows.append(row)
            progress.say(str(row))
            progress.show("cells", len(rows), turns * len(SIDES) * len(MORE) * len(REQUESTS))
    command = f"python -m load_tests.front_door.vllm_client --turns {turns}"
    report = BenchReport.here(command, PACKAGES, list(targets(rows)), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _rows(turns: int) -> Iterator[Row]:
    model = parse_settings({}).model.served_name
    for turn in range(turns):
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            with running(side, {}) as server:
                for workload, (clients, requests) in product(MORE, REQUESTS.items()):
                    found = driven(Drive(clients, requests, MORE[workload]), f"http://{HOST}:{server.port}", model)
                    yield {"turn": turn, "side": side, "workload": workload, **found}


def targets(rows: Sequence[Row]) -> Iterator[Target]:
    """Ratios are medians over turns of those within a turn."""
    found = Found(rows)
    one, many = REQUESTS
    for workload in MORE:
        name = f"{workload}, {many} clients"
        more, first = found.ratio("requests_per_s", workload, many), found.ratio("first_text_p99_ms", workload, many)
        yield Target.at_least(f"{name}: requests a second, ours / stock", more, THROUGHPUT[workload], "×")
        yield Target.at_most(f"{name}: p99 time to first token, ours / stock", first, 1.25, "×")
        alone = found.ratio("latency_p50_ms", workload, one)
        yield Target.at_most(f"{workload}, {one} client: median latency, ours / stock", alone, LATENCY[workload], "×")
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")


if __name__ == "__main__":
    typer.run(main)
