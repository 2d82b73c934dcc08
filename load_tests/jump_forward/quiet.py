"""Waits for the engines of this process to be idle: vLLM's workers go on polling for a second after their last step (vLLM 0.32:
`distributed/device_communicators/shm_broadcast.py`), and would take that second's processor time from the next arm."""

from __future__ import annotations

import asyncio
import time

import psutil

from load_tests.errors import NeverQuiet

LOOK_S = 0.1
IDLE_SHARE = 0.15
PATIENCE_S = 20.0


async def quiet() -> None:
    """Return when all child processes together use less than `IDLE_SHARE` of one processor.

    Raises:
        NeverQuiet: they are still busy after `PATIENCE_S`.
    """
    give_up = time.monotonic() + PATIENCE_S
    used, seen = _used_s(), time.monotonic()
    while time.monotonic() < give_up:
        await asyncio.sleep(LOOK_S)
        before, then = used, seen
        used, seen = _used_s(), time.monotonic()
        if used - before < IDLE_SHARE * (seen - then):
            return
    raise NeverQuiet(f"the engines are still busy {PATIENCE_S:g} s after their last answer")


def _used_s() -> float:
    """Processor seconds of all children so far."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total
