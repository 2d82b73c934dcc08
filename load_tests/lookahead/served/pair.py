"""All engines of the experiment in turn, and all ways to decode on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from load_tests.lookahead.arms import APPX, CDLH, CDSL, KEEPING, REUSING, LookaheadArm, Task
from load_tests.lookahead.served.engines import PLAIN, SETTINGS, running, settings_of
from load_tests.lookahead.served.figures import ALONE, MANY, MOST_AT_ONCE
from load_tests.lookahead.served.turns import Served, take_turns
from load_tests.lookahead.stages import Stages
from model_service.engine.environment import prepare_environment

METHODS = (CDLH, APPX, CDSL, KEEPING)
ARMS: dict[str, tuple[LookaheadArm | None, ...]] = {name: (None, *METHODS, *REUSING) if name == PLAIN else METHODS for name in SETTINGS}
AT_ONCE = {name: (ALONE, MANY, MOST_AT_ONCE) if name == PLAIN else (MOST_AT_ONCE,) for name in SETTINGS}
"""Only the engine that is as a service has it is measured; what others are there for is that they say the same."""


def answers(tasks: int) -> int:
    """How many there are in all."""
    return tasks * sum(len(ARMS[name]) * len(AT_ONCE[name]) for name in SETTINGS)


def serve(stages: Stages, folder: Path, tasks: Sequence[Task], told: Callable[[int], None]) -> Iterator[Served]:
    """`told` hears how many answers there are since it was told last; those that are kept from before are not told of."""
    prepare_environment(settings_of(folder))  # vLLM reads it when it is imported
    for name in SETTINGS:
        decides = (name, SETTINGS[name], ARMS[name], AT_ONCE[name])
        yield from stages.kept(f"engine {name}", decides, list[Served], partial(_by_itself, name, folder, tasks, told))


def _by_itself(name: str, folder: Path, tasks: Sequence[Task], told: Callable[[int], None]) -> list[Served]:
    return asyncio.run(_on(name, folder, tasks, told))


async def _on(name: str, folder: Path, tasks: Sequence[Task], told: Callable[[int], None]) -> list[Served]:
    async with running(folder, SETTINGS[name]) as engine:
        return [one for at_once in AT_ONCE[name] for one in await take_turns(engine, name, tasks, ARMS[name], at_once, told)]
