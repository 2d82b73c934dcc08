"""An engine that has ended is followed by another one, and whoever has patience waits for it."""

from __future__ import annotations

import asyncio

import pytest

from model_service.engine_keeper import EngineKeeper, Laps
from model_service.errors import EngineDead, EngineSettingsError
from model_service.hang_watch import Look, ThreadState


class Lamp:
    """The least that can be kept: it burns or not."""

    def __init__(self) -> None:
        self.is_dead = self.is_closed = False
        self.killed = asyncio.Event()
        self.looked_at = Look(False, 0, {})

    async def check_health(self) -> None:
        if self.is_dead:
            raise EngineDead("it has ended")

    def close(self) -> None:
        self.is_closed = True

    def look(self) -> Look:
        return self.looked_at

    def kill(self) -> None:
        self.is_dead = True
        self.killed.set()


class Forge:
    """Makes engines, each when it is told to."""

    def __init__(self) -> None:
        self.made: list[Lamp] = []
        self.go = asyncio.Semaphore(0)
        self.fails = False

    async def make(self, laps: Laps) -> Lamp:
        await self.go.acquire()
        laps.lap("forging")
        if self.fails:
            raise EngineSettingsError("no memory is left")
        self.made.append(Lamp())
        return self.made[-1]


async def started(hang_s: float = 30.0) -> tuple[EngineKeeper[Lamp], Forge]:
    forge = Forge()
    forge.go.release()
    keeper = EngineKeeper(forge.make, hang_s)
    await keeper.start()
    return keeper, forge


async def test_an_engine_that_has_ended_is_closed_and_followed_by_one_other() -> None:
    keeper, forge = await started()
    forge.made[0].is_dead = True
    first = await keeper.engine(0)
    await keeper.check_health()
    keeper.ended(first)
    with pytest.raises(EngineDead):
        await keeper.engine(0)
    waiting = [asyncio.create_task(keeper.engine(60)) for _ in range(3)]
    forge.go.release()
    assert {id(engine) for engine in await asyncio.gather(*waiting)} == {id(forge.made[1])}
    keeper.ended(first)  # told late, by a call that the first one has failed
    assert (keeper.restarts, len(forge.made), forge.made[0].is_closed) == (1, 2, True)
    assert list(keeper.restart_s) == ["ending", "forging"]
    await keeper.check_health()


async def test_an_engine_that_hangs_is_killed_and_followed_by_another_one() -> None:
    keeper, forge = await started(hang_s=0.05)
    lamp = forge.made[0]
    lamp.looked_at = Look(True, 0, {1: ThreadState("T", 0.0)})
    await asyncio.wait_for(lamp.killed.wait(), 60)
    await keeper.check_health()
    forge.go.release()
    assert await keeper.engine(60) is forge.made[1]
    await keeper.close()


async def test_whoever_waits_longer_than_his_patience_is_told() -> None:
    keeper, _ = await started()
    keeper.ended(await keeper.engine(0))
    with pytest.raises(EngineDead, match="not there yet"):
        await keeper.engine(0.01)
    await keeper.check_health()
    await keeper.close()


async def test_a_replica_without_an_engine_is_ill() -> None:
    keeper, forge = await started()
    keeper.ended(await keeper.engine(0))
    forge.fails = True
    forge.go.release()
    with pytest.raises(EngineDead):
        await keeper.engine(60)
    with pytest.raises(EngineDead, match="no other would start") as caught:
        await keeper.check_health()
    assert isinstance(caught.value.__cause__, EngineSettingsError)


def test_laps_are_told_by_part_and_together() -> None:
    now = 1.0
    laps = Laps(lambda: now)
    now = 1.25
    laps.lap("ending")
    now = 9.25
    laps.lap("loading")
    assert laps.seconds == {"ending": 0.25, "loading": 8.0}
    assert str(laps) == "8.2 s (ending 0.2 s, loading 8.0 s)"
