"""Sequences take room, and give it back whatever becomes of them."""

from __future__ import annotations

import asyncio
from random import Random

from deployments.api.bounds.room import Room


async def turn() -> None:
    """Lets all others run as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_takes_as_much_room_as_it_has_sequences() -> None:
    room = Room(4)
    await room.enter(3)
    assert room.has_room_for(1)
    assert not room.has_room_for(2)
    waiting = asyncio.create_task(room.enter(2))
    await turn()
    assert room.waiting == 1
    room.leave(3)
    await waiting
    assert room.has_room_for(2)
    assert not room.has_room_for(3)


async def test_a_large_call_is_not_passed_by_small_ones() -> None:
    room, order = Room(4), list[str]()

    async def come(name: str, sequences: int) -> None:
        await room.enter(sequences)
        order.append(name)

    await room.enter(3)
    tasks = [asyncio.create_task(come(name, sequences)) for name, sequences in (("large", 4), ("small", 1))]
    await turn()
    assert order == []
    room.leave(3)
    await turn()
    assert order == ["large"]
    room.leave(4)
    await asyncio.gather(*tasks)
    assert order == ["large", "small"]


async def test_a_call_that_is_too_large_for_the_room_has_it_alone() -> None:
    room = Room(4)
    await room.enter(100)
    assert not room.has_room_for(1)
    room.leave(100)
    assert room.has_room_for(4)


async def test_who_leaves_before_his_turn_leaves_room_for_the_next() -> None:
    room = Room(2)
    await room.enter(2)
    first, second = asyncio.create_task(room.enter(2)), asyncio.create_task(room.enter(1))
    await turn()
    room.leave(2)  # the first one is seated, and does not know it yet
    first.cancel()
    await second
    assert first.cancelled() or first.done()
    room.leave(1)
    assert room.has_room_for(2)


async def test_in_the_end_all_room_is_free_whoever_came_and_left_when() -> None:
    room, random, under_way = Room(8), Random(5), [0]

    async def visit(sequences: int) -> None:
        await room.enter(sequences)
        under_way[0] += min(sequences, 8)
        assert under_way[0] <= 8
        try:
            await turn()
        finally:
            under_way[0] -= min(sequences, 8)
            room.leave(sequences)

    tasks = [asyncio.create_task(visit(random.randint(1, 12))) for _ in range(300)]
    for task in random.sample(tasks, 100):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    assert (room.waiting, room.has_room_for(8)) == (0, True)
