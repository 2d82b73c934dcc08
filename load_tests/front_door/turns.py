"""The course of the benchmark: the servers by turns, and on each of them every workload with every number of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from load_tests.front_door.clients.messages import Answer, Course
from load_tests.front_door.clients.process import ClientProcess
from load_tests.front_door.figures import OK, STREAM, WHOLE, Cell
from load_tests.front_door.meter import Meter
from load_tests.front_door.servers import HOST, Server, running
from load_tests.front_door.workloads import Workload

WARMING = 16
"""Clients of the warm-up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`settings` is a tree of ours; `seconds` is the window of a cell."""

    settings: dict[str, Any]
    sides: Sequence[str]
    workloads: Sequence[Workload]
    clients: Sequence[int]
    ways: Sequence[str]
    turns: int
    seconds: float

    @property
    def cells(self) -> int:
        """Of one side's turn."""
        return len(self.workloads) * len(self.clients) * len(self.ways)


def measured(plan: Plan, client: ClientProcess, said: Callable[[str], None]) -> Iterator[Cell]:
    """Every cell of the plan; another side goes first in every turn."""
    for turn in range(plan.turns):
        for side in plan.sides if turn % 2 == 0 else plan.sides[::-1]:
            said(f"turn {turn + 1} of {plan.turns}, {side}: starting")
            with running(side, plan.settings) as server:
                warm_up(plan.workloads, side, server, client)
                for workload, clients, way in product(plan.workloads, plan.clients, plan.ways):
                    yield measured_cell(server, client, turn, side, workload, clients, way, plan.seconds)


def warm_up(workloads: Sequence[Workload], side: str, server: Server, client: ClientProcess) -> None:
    """Every question twice, so that every grammar is compiled and every kernel has run: the first answers may come by a stopgap."""
    for workload in [*workloads, *workloads]:
        course = Course(HOST, server.port, workload.encoded(side, stream=True), WARMING, stream=True, seconds=None)
        client.answers(course, lambda: None, lambda _: None)


def measured_cell(
    server: Server, client: ClientProcess, turn: int, side: str, workload: Workload, clients: int, way: str, seconds: float
) -> Cell:
    """A window of `seconds`; `side` names the bodies that are sent."""
    stream = way == STREAM
    course = Course(HOST, server.port, workload.encoded(side, stream=stream), clients, stream, seconds)
    return measured_course(server, client, turn, side, workload, course)


def measured_single_client(server: Server, client: ClientProcess, turn: int, side: str, workload: Workload, most: int) -> Cell:
    """One client that streams the first `most` bodies, each once, however long that takes. In a window of seconds the faster side would get
    questions that the slower side never gets."""
    course = Course(HOST, server.port, workload.encoded(side, stream=True)[:most], 1, stream=True, seconds=None)
    return measured_course(server, client, turn, side, workload, course)


def measured_course(server: Server, client: ClientProcess, turn: int, side: str, workload: Workload, course: Course) -> Cell:
    """The same of any course, whose bodies are the workload's."""
    meter = Meter(server.processor_time)
    answers = client.answers(course, meter.began, meter.ended)
    wrong = sum(not _is_right(workload, answer) for answer in answers)
    window = meter.window
    way = STREAM if course.stream else WHOLE
    return Cell(
        turn, side, workload.name, course.clients, way, window.seconds, answers, meter.used, window.client_s, meter.foreign_s, wrong
    )


def _is_right(workload: Workload, answer: Answer) -> bool:
    """What failed is counted as that."""
    return answer.status != OK or answer.finish in ("", "error") or workload.answers_well(answer)
