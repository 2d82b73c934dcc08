"""Sequences take room, and give it back whatever becomes of them."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from deployments.api.bounds.room import Room, RoomFull
from router.turns.seat_line import Guest


async def turn() -> None:
    """Lets all others run as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_takes_as_much_room_as_it_has_sequences() -> None:
    room, first = Room(4, 1000), Guest(sequences=3)
    await room.enter(first)
    assert room.free == 1
    waiting = asyncio.create_task(room.enter(Guest(sequences=2)))
    await turn()
    assert room.waiting == 1
    room.leave(first)
    await waiting
    assert room.free == 2


async def test_a_large_call_is_not_passed_by_small_ones() -> None:
    room, order, first, large = Room(4, 1000), list[str](), Guest(sequences=3), Guest(sequences=4)

    async def come(name: str, guest: Guest) -> None:
        await room.enter(guest)
        order.append(name)

    await room.enter(first)
    tasks = [asyncio.create_task(come(name, guest)) for name, guest in (("large", large), ("small", Guest()))]
    await turn()
    assert order == []
    room.leave(first)
    await turn()
    assert order == ["large"]
    room.leave(large)
    await asyncio.gather(*tasks)
    assert order == ["large", "small"]


@pytest.mark.parametrize(("seats", "left"), [(4, 0), (16, 2)])
async def test_a_call_that_is_too_large_for_the_room_has_all_that_is_not_kept(seats: int, left: int) -> None:
    room, large = Room(seats, 1000), Guest(sequences=100)
    await room.enter(large)
    assert room.free == left
    room.leave(large)
    assert room.free == seats


async def test_who_leaves_before_his_turn_leaves_room_for_the_next() -> None:
    room, there, second_guest = Room(2, 1000), Guest(sequences=2), Guest()
    await room.enter(there)
    first, second = asyncio.create_task(room.enter(Guest(sequences=2))), asyncio.create_task(room.enter(second_guest))
    await turn()
    room.leave(there)  # the first one is seated, and does not know it yet
    first.cancel()
    await second
    assert first.cancelled() or first.done()
    room.leave(second_guest)
    assert room.free == 2


async def test_who_has_used_less_goes_before_who_has_waited_longer() -> None:
    room, there, order = Room(1, 1000), Guest("busy", tokens=100), list[str]()

    async def visit(guest: Guest) -> None:
        await room.enter(guest)
        order.append(guest.tenant)
        room.leave(guest)

    await room.enter(there)
    busy = asyncio.create_task(visit(Guest("busy")))
    await turn()
    light = asyncio.create_task(visit(Guest("light")))
    await turn()
    room.charge(there, 1000)
    room.leave(there)
    await asyncio.gather(busy, light)
    assert order == ["light", "busy"]


async def test_who_may_not_wait_is_told_so_and_a_flood_leaves_places_to_wait() -> None:
    room, there = Room(1, 16), Guest("flood")
    await room.enter(there)
    tasks = [asyncio.create_task(room.enter(Guest("flood"))) for _ in range(20)]
    await turn()
    assert room.waiting == 14
    assert sum(isinstance(task.exception(), RoomFull) for task in tasks if task.done()) == 6
    tasks.append(asyncio.create_task(room.enter(Guest("light"))))
    await turn()
    assert room.waiting == 15
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    room.leave(there)
    assert (room.waiting, room.free) == (0, 1)


async def test_in_the_end_all_room_is_free_whoever_came_and_left_when() -> None:
    room, random, under_way = Room(8, 1000), Random(5), [0]

    async def visit(guest: Guest) -> None:
        await room.enter(guest)
        under_way[0] += min(guest.sequences, 7)
        assert under_way[0] <= 8
        try:
            await turn()
        finally:
            under_way[0] -= min(guest.sequences, 7)
            room.leave(guest)

    guests = [Guest(random.choice("abc"), random.choice([1, 2]), sequences=random.randint(1, 12)) for _ in range(300)]
    tasks = [asyncio.create_task(visit(guest)) for guest in guests]
    for task in random.sample(tasks, 100):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    assert (room.waiting, room.free) == (0, 8)
