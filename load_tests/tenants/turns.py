"""Light clients by turns alone and beside something else, so that what else changes on the machine meanwhile changes for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from deployments.reporting.report import Row
from load_tests.front_door.clients.messages import Answer
from load_tests.tenants.figures import ALONE
from load_tests.tenants.idle import wait_until_idle
from load_tests.tenants.light import Light, failed, first_p99_s


@dataclass(slots=True)
class Turns:
    """Of one scenario: what `light` is answered in each phase, for so many seconds a turn."""

    scenario: str
    light: Light
    seconds: float
    answers: dict[str, list[list[Answer]]] = field(default_factory=dict)

    def take(self, phase: str, began: Callable[[], None] = lambda: None) -> None:
        """One more turn; alone is who finds the engine idle. `began` is called when the time that counts begins."""
        if phase == ALONE:
            wait_until_idle()
        self.answers.setdefault(phase, []).append(self.light.ask(self.seconds, began))

    def row(self, phase: str) -> Row:
        """Of all turns together, and what the p99 was in each."""
        pooled = [answer for turn in self.answers[phase] for answer in turn]
        return {
            "scenario": self.scenario,
            "phase": phase,
            "answers": len(pooled),
            "failed": failed(pooled),
            "first_p99_ms": _p99_ms(pooled),
            "turns_p99_ms": " ".join(str(_p99_ms(turn)) for turn in self.answers[phase]),
        }


def _p99_ms(answers: list[Answer]) -> float | None:
    p99 = first_p99_s(answers)
    return None if p99 is None else round(1000 * p99, 1)
