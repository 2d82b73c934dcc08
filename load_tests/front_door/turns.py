"""The course of the benchmark: the servers by turns, and on each of them every workload with every number of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from load_tests.front_door.client_process import ClientProcess
from load_tests.front_door.figures import OK, STREAM, Cell
from load_tests.front_door.messages import Answer, Course, WindowEnded
from load_tests.front_door.processor_time import between
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
                _warm_up(plan, side, server, client)
                for workload, clients, way in product(plan.workloads, plan.clients, plan.ways):
                    yield _Measure(server, client).run(turn, side, workload, clients, way, plan.seconds)


def _warm_up(plan: Plan, side: str, server: Server, client: ClientProcess) -> None:
    """Every question once, so that every grammar is compiled and every kernel has run."""
    for workload in plan.workloads:
        course = Course(HOST, server.port, workload.encoded(side, stream=True), WARMING, stream=True, seconds=None)
        client.run(course, lambda: None, lambda _: None)


class _Measure:
    """One cell."""

    def __init__(self, server: Server, client: ClientProcess) -> None:
        self._server = server
        self._client = client
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}
        self._window = WindowEnded(0.0, 0.0)

    def run(self, turn: int, side: str, workload: Workload, clients: int, way: str, seconds: float) -> Cell:
        stream = way == STREAM
        course = Course(HOST, self._server.port, workload.encoded(side, stream=stream), clients, stream, seconds)
        answers = self._client.run(course, self._began, self._ended)
        used = between(self._before, self._after)
        wrong = sum(not _is_right(workload, answer) for answer in answers)
        return Cell(turn, side, workload.name, clients, way, self._window.seconds, answers, used, self._window.client_s, wrong)

    def _began(self) -> None:
        self._before = self._server.processor_time.read()

    def _ended(self, window: WindowEnded) -> None:
        self._after = self._server.processor_time.read()
        self._window = window


def _is_right(workload: Workload, answer: Answer) -> bool:
    """What failed is counted as that."""
    return answer.status != OK or answer.finish in ("", "error") or workload.answers_well(answer)
