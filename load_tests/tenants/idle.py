"""Whether what this process has started has anything left to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from load_tests.errors import Stuck

ENGINE = "EngineCore"
LOOK_S = 0.5
BUSY = 0.1
"""Of a processor: an engine that waits for requests takes less than 0.01, one that has any nearly all of it."""
PATIENCE_S = 120.0


def family(mark: str) -> Iterator[psutil.Process]:
    """What this process has started, directly or not, and has the mark in its title or command line."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if mark in " ".join([process.name(), *process.cmdline()]):
                yield process


def wait_until_idle() -> None:
    """Until the engine computes nothing. Raises Stuck: it always does, or there is none."""
    engines, deadline = list(family(ENGINE)), time.monotonic() + PATIENCE_S
    if not engines:
        raise Stuck(f"no process of this command is an {ENGINE}")
    for engine in engines:
        engine.cpu_percent()
    while time.monotonic() < deadline:
        time.sleep(LOOK_S)
        if sum(engine.cpu_percent() for engine in engines) < 100 * BUSY:
            return
    raise Stuck(f"the engine is not idle within {PATIENCE_S:g} s")
