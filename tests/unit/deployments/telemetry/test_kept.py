"""What is costly to read is read once for all who ask."""

from __future__ import annotations

import asyncio

import pytest

from deployments.telemetry.kept import Kept, Late
from tests.unit.router.clock import Clock


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.open = asyncio.Event()
        self.fails = False

    async def read(self) -> int:
        self.reads += 1
        await self.open.wait()
        if self.fails:
            raise OSError("no answer")
        return self.reads


async def test_who_asks_meanwhile_gets_the_same_and_who_asks_later_gets_news() -> None:
    source, clock = Source(), Clock()
    kept = Kept(source.read, 5.0, clock)
    asked = [asyncio.create_task(kept.get()) for _ in range(50)]
    source.open.set()
    assert await asyncio.gather(*asked) == [1] * 50
    clock.now += 4.9
    assert await kept.get() == 1
    clock.now += 0.1
    assert await kept.get() == 2


async def test_who_leaves_takes_nothing_from_others() -> None:
    source = Source()
    kept = Kept(source.read, 5.0, Clock())
    leaving, staying = asyncio.create_task(kept.get()), asyncio.create_task(kept.get())
    await asyncio.sleep(0)  # both are waiting now
    leaving.cancel()
    source.open.set()
    assert await staying == 1


async def test_a_failure_is_not_kept() -> None:
    source = Source()
    kept = Kept(source.read, 5.0, Clock())
    source.open.set()
    source.fails = True
    with pytest.raises(OSError, match="no answer"):
        await kept.get()
    source.fails = False
    assert await kept.get() == 2


async def test_what_is_not_kept_is_still_read_once_at_a_time() -> None:
    source = Source()
    now = Kept(source.read, 0.0, Clock())
    asked = [asyncio.create_task(now.get()) for _ in range(50)]
    source.open.set()
    assert await asyncio.gather(*asked) == [1] * 50
    assert await now.get() == 2


async def test_nobody_waits_longer_than_the_patience_and_reading_goes_on() -> None:
    source = Source()
    kept = Kept(source.read, 5.0, Clock(), patience_s=0.01)
    for _ in range(3):
        with pytest.raises(Late):
            await kept.get()
    source.open.set()
    assert await kept.get() == 1
    assert (kept.last, source.reads) == (1, 1)
