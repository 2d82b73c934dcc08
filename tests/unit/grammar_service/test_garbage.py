"""What fails leaves nothing to the garbage collector, whose full collections are rare: an error whose traceback holds a frame that holds
the error would keep a whole request."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable, Iterator
from weakref import ref

import pytest

from grammar_service.compiler.background import SingleFlight
from grammar_service.compiler.lookup import found_or_made
from grammar_service.errors import InvalidGrammar, PoolBusy
from grammar_service.heap import (
    CHECKS_BETWEEN_COLLECTIONS,
    CHECKS_BETWEEN_TRIMS,
    COLLECT_AFTER_BYTES,
    MMAP_THRESHOLD,
    TRIM_AFTER_BYTES,
    HeapWatch,
    trim_heap,
)
from grammar_service.own_memory import resident_bytes
from grammar_service.sandbox.turns import FairTurns


class Spec:
    """Stands for what a request holds."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def refuse(spec: Spec) -> str:
    await asyncio.sleep(0)
    raise InvalidGrammar(f"no {spec}")


async def nothing() -> None:
    await asyncio.sleep(0)


async def lookup(spec: Spec) -> None:
    await found_or_made(lambda: asyncio.create_task(nothing()), lambda: asyncio.create_task(refuse(spec)), 0.0)


async def late_lookup(spec: Spec) -> None:
    await found_or_made(lambda: asyncio.create_task(nothing()), lambda: asyncio.create_task(refuse(spec)), 10.0)


async def flight(spec: Spec) -> None:
    await SingleFlight[str]().run("key", lambda: refuse(spec))


async def turn(spec: Spec) -> None:
    turns = FairTurns(["slot"], 0, lambda: 0.0)
    async with turns.turn("one"), turns.turn("two"):
        raise AssertionError(f"there is one slot, and nobody may wait, {spec}")


@pytest.mark.parametrize("work", [lookup, late_lookup, flight, turn])
async def test_what_fails_is_freed_at_once(work: Callable[[Spec], Awaitable[None]]) -> None:
    spec = Spec()
    known = ref(spec)
    try:
        await work(spec)
    except (InvalidGrammar, PoolBusy):
        del spec
    for _ in range(3):  # callbacks of tasks
        await asyncio.sleep(0)
    assert known() is None


def test_all_garbage_of_a_process_that_has_grown_is_collected() -> None:
    class Loop:
        def __init__(self) -> None:
            self.itself = self

    resident = [1 << 30]
    watch, known = HeapWatch(lambda: resident[0]), ref(Loop())
    resident[0] += COLLECT_AFTER_BYTES
    assert not watch.check()
    assert known() is not None
    resident[0] += 1
    assert watch.check()
    assert known() is None
    resident[0] += 2 * COLLECT_AFTER_BYTES
    assert [watch.check() for _ in range(CHECKS_BETWEEN_COLLECTIONS)] == [*[False] * (CHECKS_BETWEEN_COLLECTIONS - 1), True]


def test_a_process_that_holds_what_it_has_grown_by_is_not_collected() -> None:
    resident, held = [1 << 30], [0]
    watch = HeapWatch(lambda: resident[0])
    watch.held_bytes = lambda: held[0]
    held[0] = 5 * COLLECT_AFTER_BYTES
    resident[0] += 6 * COLLECT_AFTER_BYTES
    assert not watch.check()
    held[0] -= 1
    assert watch.check()


def test_a_process_that_has_grown_returns_the_free_pages_of_its_heap() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    trim_heap()  # what other tests have left would be used first
    watch, before = HeapWatch(), resident_bytes()
    blocks = [libc.malloc(MMAP_THRESHOLD // 2) for _ in range(3 * TRIM_AFTER_BYTES // 2 // (MMAP_THRESHOLD // 2))]
    for block in blocks:
        ctypes.memset(block, 1, MMAP_THRESHOLD // 2)
    last = blocks.pop()
    for block in blocks:
        libc.free(block)
    assert resident_bytes() > before + TRIM_AFTER_BYTES
    for _ in range(CHECKS_BETWEEN_TRIMS):
        watch.check()
    assert resident_bytes() < before + TRIM_AFTER_BYTES / 2
    libc.free(last)
