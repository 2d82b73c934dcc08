"""`python -m load_tests.real_model`: a real model at the HTTP port, beside vLLM's own server with the same model and engine arguments.

Both get the same bodies, as an OpenAI client sends them: `response_format`, tools, or no constraint. Speed is measured by turns, each
server alone on the machine, with clients of a process of their own in a closed loop. What answers are worth is counted in the first turn:
each exercise once, greedily, with eight clients; then by a service without jumps, twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config_model import SMOLLM2, name_of
from deployments.reporting.report import BenchReport, Row
from load_tests.front_door.clients.messages import Answer, Course
from load_tests.front_door.clients.process import ClientProcess, client_process
from load_tests.front_door.figures import OURS, SIDES, STREAM
from load_tests.front_door.servers import HOST, Server, running
from load_tests.front_door.turns import measured_cell, measured_single_client
from load_tests.front_door.workloads import Workload
from load_tests.real_model.figures import AGAIN, CLIENTS, WITHOUT_JUMPS, Worth, targets, worth_rows
from load_tests.real_model.tasks import FREE, TASKS, Exercise, chat_body, is_valid, make_exercises, names_of
from load_tests.reporting.running_service import PACKAGES

DIFFERENT = 24
"""Exercises of a task whose answers are timed; clients ask them round and round."""
BATCH = 32
"""Bodies that the clients' process answers before it reports."""


@dataclass(frozen=True, slots=True)
class Plan:
    settings: Mapping[str, Any]
    workloads: Sequence[Workload]
    exercises: Mapping[str, Sequence[Exercise]]
    clients: Sequence[int]
    turns: int
    seconds: float
    worths: list[Worth] = field(default_factory=list)


def main(
    model: Annotated[str, typer.Option(help="as `model.path` has it")] = SMOLLM2,
    tasks: Annotated[str, typer.Option(help="which, with commas between")] = ",".join(TASKS),
    clients: Annotated[str, typer.Option(help="clients at a time, with commas between")] = "1,8,32",
    exercises: Annotated[int, typer.Option(min=2, help="of each task whose answers are judged")] = 200,
    turns: Annotated[int, typer.Option(min=1, help="of both sides")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell with several clients")] = 10.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second, latency and right answers with vLLM's own server."""
    chosen = names_of(tasks, TASKS)
    made = {task: make_exercises(task, exercises) for task in chosen}
    workloads = [_workload(task, made[task][:DIFFERENT], name_of(model)) for task in chosen]
    plan = Plan({"model": {"path": model}}, workloads, made, [int(number) for number in clients.split(",")], turns, seconds)
    command = f"python -m load_tests.real_model --clients {clients} --exercises {exercises} --turns {turns} --seconds {seconds:g}"
    if tasks != ",".join(TASKS) or model != SMOLLM2:
        command += f" --model {model} --tasks '{tasks}'"
    rows = _rows(plan, name_of(model))
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _workload(task: str, exercises: Sequence[Exercise], model: str) -> Workload:
    bodies = [chat_body(exercise, model) for exercise in exercises]
    return Workload(
        task, dict.fromkeys(SIDES, bodies), lambda answer: answer.finish == "length" or is_valid(exercises[answer.body], answer.text)
    )


def _rows(plan: Plan, model: str) -> list[Row]:
    rows: list[Row] = []
    with client_process() as client, CaseProgress(Console(stderr=True)) as progress:
        for turn in range(plan.turns):
            for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
                progress.say(f"turn {turn + 1} of {plan.turns}, {side}: starting")
                with running(side, dict(plan.settings)) as server:
                    rows += _turn(plan, server, client, turn, side, model, progress.say)
        progress.say(f"{WITHOUT_JUMPS}: starting")
        with running(OURS, {"model": {**plan.settings["model"], "jump_forward": False}}) as server:
            for side in (WITHOUT_JUMPS, AGAIN):
                plan.worths.extend(_worths(plan, server, client, side, model))
    rows += worth_rows(plan.worths)
    return rows


def _turn(plan: Plan, server: Server, client: ClientProcess, turn: int, side: str, model: str, say: Callable[[str], None]) -> Iterator[Row]:
    for workload in plan.workloads:  # so that every grammar is compiled, and every kernel has run
        _once(server, client, workload.encoded(side, stream=True))
    if turn == 0:
        plan.worths.extend(_worths(plan, server, client, side, model))
        for worth in plan.worths:
            say(f"{worth.side:9}{worth.task:15} {dict(worth.row(None, None))}")
    for workload, clients in product(plan.workloads, plan.clients):
        if clients == 1:
            cell = measured_single_client(server, client, turn, side, workload, DIFFERENT)
        else:
            cell = measured_cell(server, client, turn, side, workload, clients, STREAM, plan.seconds)
        row = {"kind": "speed", **cell.row()}
        say(f"{side:9}{row['workload']:15}{clients:3} {row['requests_per_s']:7.2f}/s  latency {row['latency_p50_ms']} ms  cut {row['cut']}")
        yield row


def _worths(plan: Plan, server: Server, client: ClientProcess, side: str, model: str) -> Iterator[Worth]:
    for task, exercises in plan.exercises.items():
        if task == FREE:
            continue
        bodies = [chat_body(exercise, model) for exercise in exercises]
        encoded = Workload(task, {side: bodies}, lambda _: True).encoded(side, stream=True)
        yield Worth.of(side, task, exercises, _once(server, client, encoded))


def _once(server: Server, client: ClientProcess, bodies: Sequence[bytes]) -> list[Answer]:
    """Sends each body once. In batches, because a clients' process that reports nothing for three minutes counts as hung."""
    found: list[Answer] = []
    for begin in range(0, len(bodies), BATCH):
        course = Course(HOST, server.port, bodies[begin : begin + BATCH], CLIENTS, stream=True, seconds=None)
        answers = client.answers(course, lambda: None, lambda _: None)
        found += [replace(answer, body=answer.body + begin) for answer in answers]
    return found


if __name__ == "__main__":
    typer.run(main)
