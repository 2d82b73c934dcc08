"""Ways to decode take turns on an engine: none of them is measured on a machine that has become slower meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from load_tests.lookahead.arms import MOST, LookaheadArm, Task
from load_tests.lookahead.figures import GREEDY
from load_tests.lookahead.served.engines import Said, ask
from model_service.lookahead.instructions import Tokens

if TYPE_CHECKING:
    from model_service.engine.engine import Engine

TURN = 50
"""Tasks that one way decodes before it is the next one's turn."""
SUMS = ("target_calls", "target_steps", "draft_calls", "draft_steps")
FORWARDS, PREEMPTIONS = "forwards", "preemptions"


@dataclass(frozen=True, slots=True)
class Served:
    """What one way to decode said for each task, so many at once: seconds in all, the forwards and preemptions that the engine core
    counted, and what the usage says (`SUMS`)."""

    engine: str
    arm: str
    at_once: int
    said: list[Tokens]
    seconds: float
    counted: dict[str, int]

    @property
    def milliseconds(self) -> float:
        """For a token."""
        return 1000 * self.seconds / sum(map(len, self.said))


async def take_turns(
    engine: Engine,
    name: str,
    tasks: Sequence[Task],
    arms: Sequence[LookaheadArm | None],
    at_once: int,
    told: Callable[[int], None],
    most: int = MOST,
) -> list[Served]:
    """All tasks by every arm, None being greedy decoding, each answer of up to `most` tokens. `told` hears how many answers there are."""
    turns = {arm: _Turns(engine, most, tasks, arm, at_once, told) for arm in arms}
    for turn in turns.values():
        await turn.warm()
    for start in range(0, len(tasks), TURN):
        for turn in turns.values():
            await turn.take(start)
    return [turn.served(name) for turn in turns.values()]


class _Turns:
    """Of one arm."""

    def __init__(
        self, engine: Engine, most: int, tasks: Sequence[Task], arm: LookaheadArm | None, at_once: int, told: Callable[[int], None]
    ) -> None:
        self._engine, self._most, self._tasks, self._arm, self._at_once, self._told = engine, most, tasks, arm, at_once, told
        self._said: list[Said] = []
        self._seconds = 0.0
        self._counted: Counter[str] = Counter()

    async def warm(self) -> None:
        await asyncio.gather(*(self._ask(number, "warm") for number in range(min(self._at_once, len(self._tasks)))))

    async def _ask(self, number: int, salt: str) -> Said:
        return await ask(self._engine, self._tasks[number], self._arm, number, salt, self._most)

    async def take(self, start: int) -> None:
        seats, before, began = asyncio.Semaphore(self._at_once), self._engine.core, time.perf_counter()

        async def one(number: int) -> Said:
            async with seats:
                said = await self._ask(number, f"{self._name}, {self._at_once}")
            self._told(1)
            return said

        self._said += await asyncio.gather(*map(one, range(start, min(start + TURN, len(self._tasks)))))
        self._seconds += time.perf_counter() - began
        now = self._engine.core
        self._counted.update({FORWARDS: now.steps - before.steps, PREEMPTIONS: now.preemptions - before.preemptions})

    def served(self, engine: str) -> Served:
        counted = self._counted.copy()
        for said in self._said:
            counted.update({name: said.details[name] for name in SUMS if name in said.details})
        return Served(engine, self._name, self._at_once, [said.tokens for said in self._said], self._seconds, dict(counted))

    @property
    def _name(self) -> str:
        return GREEDY if self._arm is None else self._arm.name
