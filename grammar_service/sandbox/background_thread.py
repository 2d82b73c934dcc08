"""Work that takes long, outside of the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from grammar_service.sandbox.turns import FairTurns

MOST_WAITING = 1 << 16
"""Jobs. Never reached: an ingress holds fewer requests open."""

P = ParamSpec("P")
T = TypeVar("T")


class BackgroundThread:
    """One thread, in which tenants take turns: a tenant with many jobs delays others by one job at most. A process has one: each more would
    take the interpreter's lock from its event loop."""

    def __init__(self) -> None:
        self._turns = FairTurns([ThreadPoolExecutor(1, "background")], MOST_WAITING, time.monotonic)

    async def run(self, tenant: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns or raises."""
        async with self._turns.turn(tenant) as thread:
            return await asyncio.get_running_loop().run_in_executor(thread, lambda: function(*args, **kwargs))
