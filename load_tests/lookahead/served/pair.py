"""All engines of the experiment in turn, and all ways to decode on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from load_tests.lookahead.arms import APPX, CDLH, CDSL, KEEPING, REUSING, LookaheadArm, Task
from load_tests.lookahead.served.engines import PLAIN, SETTINGS, running, settings_of
from load_tests.lookahead.served.figures import ALONE, MANY, MOST_AT_ONCE
from load_tests.lookahead.served.turns import BEHIND_EXAMPLES, BY_THEMSELVES, Served, Way, take_turns
from load_tests.lookahead.stages import Stages
from model_service.engine.environment import prepare_environment

METHODS = (CDLH, APPX, CDSL, KEEPING)
Tasks = Mapping[str, Sequence[Task]]
"""By what their prompts are: `BY_THEMSELVES`, `BEHIND_EXAMPLES`."""


@dataclass(frozen=True, slots=True)
class Round:
    """These arms take turns, so many answers at once."""

    prompts: str
    at_once: int
    arms: tuple[LookaheadArm | None, ...]


_EVERYWHERE = tuple(Round(BEHIND_EXAMPLES, at_once, (None, *METHODS)) for at_once in (ALONE, MOST_AT_ONCE))
_MEASURED = tuple(Round(BY_THEMSELVES, at_once, (None, *METHODS, *REUSING)) for at_once in (ALONE, MANY, MOST_AT_ONCE))
_SHORT = Round(BY_THEMSELVES, MOST_AT_ONCE, METHODS)
ROUNDS = {name: (*_MEASURED, *_EVERYWHERE) if name == PLAIN else (_SHORT, *_EVERYWHERE) for name in SETTINGS}
"""Only the engine that is as a service has it is measured; what others are there for is that they say the same."""


def answers(tasks: Tasks) -> int:
    """How many there are in all."""
    return sum(len(tasks[one.prompts]) * len(one.arms) for rounds in ROUNDS.values() for one in rounds)


def serve(stages: Stages, folder: Path, tasks: Tasks, told: Callable[[int], None]) -> Iterator[Served]:
    """`told` hears how many answers there are since it was told last; those that are kept from before are not told of."""
    prepare_environment(settings_of(folder))  # vLLM reads it when it is imported
    for name in SETTINGS:
        decides = (name, SETTINGS[name], ROUNDS[name])
        yield from stages.kept(f"engine {name}", decides, list[Served], partial(_by_itself, name, folder, tasks, told))


def _by_itself(name: str, folder: Path, tasks: Tasks, told: Callable[[int], None]) -> list[Served]:
    return asyncio.run(_on(name, folder, tasks, told))


async def _on(name: str, folder: Path, tasks: Tasks, told: Callable[[int], None]) -> list[Served]:
    found: list[Served] = []
    async with running(folder, SETTINGS[name]) as engine:
        for one in ROUNDS[name]:
            found += await take_turns(engine, Way(name, one.prompts, one.at_once), tasks[one.prompts], one.arms, told)
    return found
