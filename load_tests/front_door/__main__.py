"""`python -m load_tests.front_door`: what a user gets at the HTTP port, beside vLLM's own server.

Both serve the same model with the same engine arguments on this machine, one after the other, by turns. The clients are a process of their
own, each with a connection of its own, in a closed loop; what counts is what ends within a window, after each client has been answered
once. Decoding is greedy; every grammar is compiled before anything is measured. Processor time is that of all processes of a service.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config import parse_settings
from deployments.reporting.report import BenchReport, Row
from load_tests.errors import UnknownTask
from load_tests.front_door.clients.process import client_process
from load_tests.front_door.figures import SIDES, WAYS, WORKLOADS, targets
from load_tests.front_door.turns import Plan, measured
from load_tests.front_door.workloads import make_workload
from load_tests.reporting.running_service import PACKAGES

ALL_CLIENTS = "1,8,32,64"


def main(
    workloads: Annotated[str, typer.Option(help="which, with commas between")] = ",".join(WORKLOADS),
    clients: Annotated[str, typer.Option(help="clients at a time, with commas between")] = ALL_CLIENTS,
    answers: Annotated[str, typer.Option(help="how they are given, with commas between")] = ",".join(WAYS),
    sides: Annotated[str, typer.Option(help="whose server, with commas between")] = ",".join(SIDES),
    turns: Annotated[int, typer.Option(min=1, help="of all sides")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell")] = 5.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second, time to first token, latency and processor time with vLLM's own server."""
    settings = parse_settings({})
    plan = Plan(
        settings={},
        sides=_chosen(sides, SIDES),
        workloads=[make_workload(name, settings.model.served_name) for name in _chosen(workloads, WORKLOADS)],
        clients=[int(number) for number in clients.split(",")],
        ways=_chosen(answers, WAYS),
        turns=turns,
        seconds=seconds,
    )
    given = {"workloads": (workloads, WORKLOADS), "answers": (answers, WAYS), "sides": (sides, SIDES)}
    chosen = "".join(f" --{name} '{value}'" for name, (value, everything) in given.items() if value != ",".join(everything))
    command = f"python -m load_tests.front_door --clients {clients} --turns {turns} --seconds {seconds:g}{chosen}"
    rows = _rows(plan)
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _rows(plan: Plan) -> list[Row]:
    rows: list[Row] = []
    total = plan.cells * len(plan.sides) * plan.turns
    with client_process() as client, CaseProgress(Console(stderr=True)) as progress:
        for cell in measured(plan, client, progress.say):
            rows.append(cell.row())
            progress.say(_line(rows[-1]))
            progress.show("cells", len(rows), total)
    return rows


def _chosen(given: str, of: Sequence[str]) -> list[str]:
    names = given.split(",")
    if unknown := [name for name in names if name not in of]:
        raise UnknownTask(f"there is no {unknown[0]!r}; there are {', '.join(of)}")
    return names


def _line(row: Row) -> str:
    parts = " ".join(f"{part} {ms}" for part, ms in row["processor_ms"].items() if ms and ms >= 0.05)
    return (
        f"{row['side']:9}{row['workload']:15}{row['clients']:3} {row['answers']:6}{row['requests']:5} requests"
        f" ({row['failed']} failed, {row['wrong']} wrong, {row['cut']} cut) {row['requests_per_s']:7.2f}/s"
        f"  first {row['first_text_p50_ms']}/{row['first_text_p99_ms']} ms  latency {row['latency_p50_ms']}/{row['latency_p99_ms']} ms"
        f"  front {row['front_ms']} client {row['client_ms']} ms a request  ({parts}; others {row['foreign_share']:.0%} of a processor)"
    )


if __name__ == "__main__":
    typer.run(main)
