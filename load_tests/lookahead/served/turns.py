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
FORWARDS, PREEMPTIONS, CACHED = "forwards", "preemptions", "cached"
BY_THEMSELVES, BEHIND_EXAMPLES = "by themselves", "behind examples"
"""What prompts are: shorter than a block, or mostly longer."""


@dataclass(frozen=True, slots=True)
class Way:
    """Which engine is asked, what the prompts are, and how many answers there are at once."""

    engine: str
    prompts: str
    at_once: int


@dataclass(frozen=True, slots=True)
class Served:
    """What one arm said for each task: seconds in all, the forwards and preemptions that the engine core counted, the tokens of prompts
    that its prefix cache had, and what the usage says (`SUMS`)."""

    way: Way
    arm: str
    said: list[Tokens]
    seconds: float
    counted: dict[str, int]

    @property
    def milliseconds(self) -> float:
        """For a token."""
        return 1000 * self.seconds / sum(map(len, self.said))


async def take_turns(
    engine: Engine,
    way: Way,
    tasks: Sequence[Task],
    arms: Sequence[LookaheadArm | None],
    told: Callable[[int], None],
    most: int = MOST,
) -> list[Served]:
    """All tasks by every arm, None being greedy decoding, each answer of up to `most` tokens. `told` hears how many answers there are."""
    turns = {arm: _Turns(engine, way, most, tasks, arm, told) for arm in arms}
    for turn in turns.values():
        await turn.warm()
    for start in range(0, len(tasks), TURN):
        for turn in turns.values():
            await turn.take(start)
    return [turn.served() for turn in turns.values()]


class _Turns:
    """Of one arm."""

    def __init__(
        self, engine: Engine, way: Way, most: int, tasks: Sequence[Task], arm: LookaheadArm | None, told: Callable[[int], None]
    ) -> None:
        self._engine, self._way, self._most, self._tasks, self._arm, self._told = engine, way, most, tasks, arm, told
        self._said: list[Said] = []
        self._seconds = 0.0
        self._counted: Counter[str] = Counter()

    async def warm(self) -> None:
        await asyncio.gather(*(self._ask(number, "warm") for number in range(min(self._way.at_once, len(self._tasks)))))

    async def _ask(self, number: int, salt: str) -> Said:
        return await ask(self._engine, self._tasks[number], self._arm, number, salt, self._most)

    async def take(self, start: int) -> None:
        seats, before, began = asyncio.Semaphore(self._way.at_once), self._engine.core, time.perf_counter()

        async def one(number: int) -> Said:
            async with seats:
                said = await self._ask(number, f"{self._name}, {self._way}")
            self._told(1)
            return said

        self._said += await asyncio.gather(*map(one, range(start, min(start + TURN, len(self._tasks)))))
        self._seconds += time.perf_counter() - began
        now = self._engine.core
        self._counted.update({FORWARDS: now.steps - before.steps, PREEMPTIONS: now.preemptions - before.preemptions})

    def served(self) -> Served:
        counted = self._counted.copy()
        counted[CACHED] = sum(said.cached for said in self._said)
        for said in self._said:
            counted.update({name: said.details[name] for name in SUMS if name in said.details})
        return Served(self._way, self._name, [said.tokens for said in self._said], self._seconds, dict(counted))

    @property
    def _name(self) -> str:
        return GREEDY if self._arm is None else self._arm.name
