"""The light tenant: some clients that ask for little, and notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import quantile
from load_tests.front_door.clients.messages import Answer, Course
from load_tests.front_door.clients.process import ClientProcess

CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Light:
    """`client` is the process of its clients."""

    client: ClientProcess
    host: str
    port: int
    key: str
    bodies: Sequence[bytes]

    def ask(self, seconds: float, began: Callable[[], None] = lambda: None) -> list[Answer]:
        """Those that ended in that time, after each client has been answered once. `began` is called when the time begins."""
        course = Course(self.host, self.port, self.bodies, CLIENTS, stream=True, seconds=seconds, key=self.key)
        return [answer for answer in self.client.answers(course, began, lambda _: None) if answer.ended]


def first_p99_s(answers: Sequence[Answer]) -> float | None:
    """Seconds to the first token."""
    return quantile([answer.first_s for answer in answers if answer.first_s is not None], 0.99)


def failed(answers: Sequence[Answer]) -> int:
    return sum(answer.status != 200 or answer.first_s is None or answer.finish == "error" for answer in answers)
