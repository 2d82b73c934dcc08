"""`python -m load_tests.drafts`: a real model at the HTTP port, with drafts inside free values, with jumps alone, and by vLLM's own server
without drafts and with its own: n-grams of the prompt, and suffixes (where the package `arctic_inference` is installed).

All get the same bodies, as an OpenAI client sends them, and nothing is asked twice: what remembers answers would only have to say them
again. By turns, each server alone on the machine, with clients of a process of their own
in a closed loop. A piece of a stream is what one forward gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.config_model import SMOLLM2, name_of
from deployments.reporting.report import BenchReport, Row
from load_tests.drafts.figures import DRAFTS, JUMPS, NGRAM, SIDES, STOCK, SUFFIX, accepted_rows, draw, targets
from load_tests.drafts.tasks import ALL, EDIT, make
from load_tests.front_door.clients.messages import Course
from load_tests.front_door.clients.process import ClientProcess, client_process
from load_tests.front_door.figures import OURS, STREAM, Cell
from load_tests.front_door.figures import STOCK as STOCK_SERVER
from load_tests.front_door.servers import HOST, Server, running
from load_tests.front_door.turns import measured_cell, measured_single_client
from load_tests.front_door.workloads import Workload
from load_tests.real_model.tasks import EXTRACTION, FREE, Exercise, chat_body, is_valid, names_of
from load_tests.reporting.running_service import PACKAGES
from load_tests.routing.page import settled_page

WARM_UP, FRESH = 16, 320
"""Exercises of a task that are asked before anything is measured, and those that each cell may need: nothing is asked twice."""
WARMING = 16
"""Clients of the warm-up."""
SINGLE_CLIENT, SINGLE_CLIENT_EXTRACTIONS = 12, 40
"""Exercises of a task for one client. About one answer of this model in 30 runs to its maximum length, so that the task whose speed is
promised needs more of them."""
_NGRAM = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
_SUFFIX = {"method": "suffix", "num_speculative_tokens": 16}
SERVERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    STOCK: (STOCK_SERVER, {}),
    NGRAM: (STOCK_SERVER, {"engine_args": {"speculative_config": _NGRAM}}),
    SUFFIX: (STOCK_SERVER, {"engine_args": {"speculative_config": _SUFFIX}}),
    JUMPS: (OURS, {"prompt_lookup": False}),
    DRAFTS: (OURS, {"prompt_lookup": True}),
}
"""Which server, and the settings of its model."""
PEERS_ASKED = (EXTRACTION, EDIT)
"""Tasks for vLLM's own server: a short and a long answer that stand in the prompt. `load_tests.real_model` compares the others with it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`warm_up` has a workload a task, `cells` one for each with each number of clients."""

    model: str
    warm_up: Sequence[Workload]
    cells: Sequence[tuple[int, Workload]]
    sides: Sequence[str]
    turns: int
    seconds: float

    @classmethod
    def of(cls, model: str, tasks: Sequence[str], clients: Sequence[int], turns: int, seconds: float) -> Plan:
        warm_up, cells = [], []
        for task in tasks:
            exercises = make(task, WARM_UP + FRESH * len(clients))
            warm_up.append(_workload(task, exercises[:WARM_UP], name_of(model)))
            starts = range(WARM_UP, len(exercises), FRESH)
            cells += [
                (number, _workload(task, exercises[at : at + FRESH], name_of(model))) for number, at in zip(clients, starts, strict=True)
            ]
        sides = [side for side in SIDES if side != SUFFIX or find_spec("arctic_inference") is not None]
        return cls(model, warm_up, cells, sides, turns, seconds)

    def asked_of(self, side: str) -> Plan:
        """What that side is asked."""
        if SERVERS[side][0] == OURS:
            return self
        warm_up = [workload for workload in self.warm_up if workload.name in PEERS_ASKED]
        return replace(self, warm_up=warm_up, cells=[(number, workload) for number, workload in self.cells if workload.name in PEERS_ASKED])


def main(
    model: Annotated[str, typer.Option(help="as `model.path` has it")] = SMOLLM2,
    tasks: Annotated[str, typer.Option(help="which, with commas between")] = ",".join(ALL),
    clients: Annotated[str, typer.Option(help="clients at a time, with commas between")] = "1,8,32",
    turns: Annotated[int, typer.Option(min=1, help="of all sides")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell with several clients")] = 10.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second with jumps alone and with vLLM's own server and drafts."""
    plan = Plan.of(model, names_of(tasks, ALL), [int(number) for number in clients.split(",")], turns, seconds)
    command = f"python -m load_tests.drafts --clients {clients} --turns {turns} --seconds {seconds:g}"
    if tasks != ",".join(ALL) or model != SMOLLM2:
        command += f" --model {model} --tasks '{tasks}'"
    rows = _rows(plan)
    if json_out is not None:
        draw(rows, json_out.with_suffix(".png"))
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def _workload(task: str, exercises: Sequence[Exercise], model: str) -> Workload:
    bodies = [chat_body(exercise, model) for exercise in exercises]
    return Workload(
        task, dict.fromkeys(SIDES, bodies), lambda answer: answer.finish == "length" or is_valid(exercises[answer.body], answer.text)
    )


def _rows(plan: Plan) -> list[Row]:
    rows: list[Row] = []
    with client_process() as client, CaseProgress(Console(stderr=True)) as progress:
        for turn in range(plan.turns):
            for side in plan.sides if turn % 2 == 0 else plan.sides[::-1]:
                progress.say(f"turn {turn + 1} of {plan.turns}, {side}: starting")
                rows += _turn(plan.asked_of(side), client, turn, side, progress.say)
    return rows


def _turn(plan: Plan, client: ClientProcess, turn: int, side: str, say: Callable[[str], None]) -> Iterator[Row]:
    server_kind, settings = SERVERS[side]
    with running(server_kind, {"model": {"path": plan.model, **settings}}) as server:
        for workload in plan.warm_up:  # so that every grammar is compiled, every kernel has run, and drafts are learnt
            course = Course(HOST, server.port, workload.encoded(side, stream=True), WARMING, stream=True, seconds=None)
            client.answers(course, lambda: None, lambda _: None)
        for clients, workload in plan.cells:
            row = _cell(server, client, turn, side, workload, clients, plan.seconds).row()
            say(f"{side:14}{row['workload']:16}{clients:3} {row['requests_per_s']:7.2f}/s  pieces {row['pieces_per_request']}")
            yield row
        if side == DRAFTS and any(workload.name != FREE for _, workload in plan.cells):  # free text has no drafts that are counted
            yield from settled_page(f"http://{HOST}:{server.port}", lambda url: _accepted(url, turn))


def _cell(server: Server, client: ClientProcess, turn: int, side: str, workload: Workload, clients: int, seconds: float) -> Cell:
    if clients == 1:
        most = SINGLE_CLIENT_EXTRACTIONS if workload.name == EXTRACTION else SINGLE_CLIENT
        return measured_single_client(server, client, turn, side, workload, most)
    return measured_cell(server, client, turn, side, workload, clients, STREAM, seconds)


def _accepted(url: str, turn: int) -> list[Row]:
    return accepted_rows(httpx.get(f"{url}/metrics", timeout=30, trust_env=False).text, turn)


if __name__ == "__main__":
    typer.run(main)
