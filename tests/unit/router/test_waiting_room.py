"""Groups on an event loop: released together, left by who is cancelled, and never stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from router.dispatcher import Dispatcher
from router.fleet import Fleet
from router.grouping import Dispatched, Release
from router.parameters import Parameters
from router.waiting_room import WaitingRoom

LIMITS = Parameters(prefill_budget=100, seats=8, patience_s=0.05, longest_wait_s=0.1, retry_s=0.001)


class Recorded(Dispatcher):
    """Remembers what each tick has released; `broken`, it fails."""

    def __init__(self) -> None:
        super().__init__(Random(5), lambda: 1000.0, LIMITS)
        self.ticks: list[list[Release]] = []
        self.broken = False
        self.adopt(Fleet("abc"))

    def tick(self, now: float) -> list[Release]:
        if self.broken:
            raise RuntimeError("broken")
        self.ticks.append(super().tick(now))
        return self.ticks[-1]


@pytest.fixture
def policy() -> Iterator[Recorded]:
    made = Recorded()
    yield made
    assert made.next_tick() is None


@pytest.fixture
def failures() -> list[Exception]:
    return []


@pytest.fixture
def room(policy: Recorded, failures: list[Exception]) -> Iterator[WaitingRoom]:
    made = WaitingRoom(policy, failures.append)
    yield made
    assert len(made) == 0


async def test_a_request_alone_is_released_in_the_next_turn(room: WaitingRoom, policy: Recorded) -> None:
    (home,) = policy.ranks(Dispatched("any", "key"), 1)
    assert await room.released(Dispatched("one", "key", 10)) == home
    assert len(policy.ticks) == 1


async def test_requests_that_arrive_in_one_turn_share_its_tick(room: WaitingRoom, policy: Recorded) -> None:
    await asyncio.gather(*(room.released(Dispatched(name, name, 10)) for name in "vwxyz"))
    assert len(policy.ticks) == 1


async def test_a_group_is_released_together(room: WaitingRoom, policy: Recorded) -> None:
    replicas = await asyncio.gather(*(room.released(Dispatched(name, "key", 10)) for name in "vwxyz"))
    assert len(set(replicas)) == 1
    assert [release.requests for releases in policy.ticks for release in releases] == [tuple("vwxyz")]


async def test_who_finds_no_seat_asks_again_until_the_longest_wait_ends(room: WaitingRoom, policy: Recorded) -> None:
    seats = 3 * int(LIMITS.seats)
    replicas = await asyncio.gather(*(room.released(Dispatched(str(number), "key", 80)) for number in range(seats + 6)))
    assert {replica: replicas[:seats].count(replica) for replica in "abc"} == dict.fromkeys("abc", 8)
    assert None not in replicas
    assert len(policy.ticks) > 2


async def test_what_finds_no_seat_goes_when_one_is_free_and_not_by_the_clock(failures: list[Exception]) -> None:
    policy = Dispatcher(Random(5), lambda: 1000.0, replace(LIMITS, seats=1, longest_wait_s=600, retry_s=60))
    policy.adopt(Fleet("a"))
    room = WaitingRoom(policy, failures.append)
    policy.sent(Dispatched("there"), "a")
    waits = asyncio.create_task(room.released(Dispatched("waits", "key", 10)))
    for _ in range(3):
        await asyncio.sleep(0)
        room.look()
    assert len(room) == 1
    policy.gone("there")
    room.look()
    assert await waits == "a"


async def test_who_is_cancelled_leaves_and_the_others_go(room: WaitingRoom, policy: Recorded) -> None:
    (home,) = policy.ranks(Dispatched("any", "key"), 1)
    leaving = asyncio.create_task(room.released(Dispatched("leaves", "key", 10)))
    staying = asyncio.create_task(room.released(Dispatched("stays", "key", 10)))
    await asyncio.sleep(0)
    assert len(room) == 2
    leaving.cancel()
    assert await staying == home
    assert leaving.cancelled()
    policy.gone("stays")
    assert len(policy) == 0


async def test_a_broken_policy_lets_everybody_go(room: WaitingRoom, policy: Recorded, failures: list[Exception]) -> None:
    policy.broken = True
    assert await asyncio.gather(*(room.released(Dispatched(name, "key", 10)) for name in "xy")) == [None, None]
    assert [str(failure) for failure in failures] == ["broken"]
    policy.broken = False
    assert len(policy) == 0
