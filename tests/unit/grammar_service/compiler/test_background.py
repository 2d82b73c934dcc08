from __future__ import annotations

import asyncio

import pytest

from grammar_service.compiler.background import SingleFlight

pytestmark = pytest.mark.asyncio


class Work:
    def __init__(self, error: Exception | None = None) -> None:
        self.started = asyncio.Event()
        self.finish = asyncio.Event()
        self.calls = 0
        self._error = error

    async def __call__(self) -> str:
        self.calls += 1
        self.started.set()
        await self.finish.wait()
        if self._error:
            raise self._error
        return "done"


async def test_waiters_of_one_key_share_one_computation() -> None:
    flights: SingleFlight[str] = SingleFlight()
    work = Work()
    waiters = [asyncio.create_task(flights.run("k", work)) for _ in range(50)]
    await work.started.wait()
    work.finish.set()
    assert await asyncio.gather(*waiters) == ["done"] * 50
    assert work.calls == 1
    assert len(flights) == 0


async def test_a_cancelled_waiter_leaves_the_others() -> None:
    flights: SingleFlight[str] = SingleFlight()
    work = Work()
    first, second = (asyncio.create_task(flights.run("k", work)) for _ in range(2))
    await work.started.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.finish.set()
    assert await second == "done"


async def test_work_without_waiters_still_ends_and_leaves_no_entry() -> None:
    flights: SingleFlight[str] = SingleFlight()
    work = Work(RuntimeError("nobody hears this"))
    waiter = asyncio.create_task(flights.run("k", work))
    await work.started.wait()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert "k" in flights
    work.finish.set()
    follower = Work()
    follower.finish.set()
    with pytest.raises(RuntimeError):
        await flights.run("k", follower)
    assert len(flights) == 0
    assert await flights.run("k", follower) == "done"


async def test_an_exception_reaches_all_waiters_and_is_not_kept() -> None:
    flights: SingleFlight[str] = SingleFlight()
    work = Work(ValueError("no"))
    waiters = [asyncio.create_task(flights.run("k", work)) for _ in range(3)]
    await work.started.wait()
    work.finish.set()
    answers = await asyncio.gather(*waiters, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["no"] * 3
    again = Work()
    again.finish.set()
    assert await flights.run("k", again) == "done"


async def test_close_ends_all_flights() -> None:
    flights: SingleFlight[str] = SingleFlight()
    waiter = asyncio.create_task(flights.run("k", Work()))
    await asyncio.wait([waiter], timeout=0)
    await flights.close()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert len(flights) == 0
