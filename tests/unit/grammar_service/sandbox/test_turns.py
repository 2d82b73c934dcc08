from __future__ import annotations

import asyncio

from grammar_service.errors import PoolBusy
from grammar_service.sandbox.turns import FairTurns


class Bench:
    """Two slots, or as many as asked for, on a clock that stands still unless it is told."""

    def __init__(self, slots: int = 2, max_waiting: int = 8) -> None:
        self.now = 0.0
        self.turns = FairTurns([f"slot {index}" for index in range(slots)], max_waiting, lambda: self.now)
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.running: dict[asyncio.Task[None], asyncio.Event] = {}

    async def come(self, tenant: str) -> asyncio.Task[None]:
        """A job that holds its slot until `finish`."""
        task = self.begin(tenant)
        await settle()
        return task

    def begin(self, tenant: str) -> asyncio.Task[None]:
        """The same, which has still to ask for its slot."""
        leave = asyncio.Event()

        async def job() -> None:
            async with self.turns.turn(tenant):
                self.order.append(tenant)
                await leave.wait()

        task = asyncio.create_task(job())
        self.tasks.append(task)
        self.running[task] = leave
        return task

    async def finish(self, task: asyncio.Task[None], seconds: float) -> None:
        self.now += seconds
        self.running[task].set()
        await asyncio.gather(task, return_exceptions=True)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def end(bench: Bench) -> None:
    for task in bench.tasks:
        task.cancel()
    await asyncio.gather(*bench.tasks, return_exceptions=True)
    assert bench.turns.waiting == 0


async def test_the_last_slot_is_kept_from_the_tenant_that_holds_the_others() -> None:
    bench = Bench(slots=2)
    await bench.come("flood")
    await bench.come("flood")
    assert bench.order == ["flood"]
    await bench.come("calm")
    assert bench.order == ["flood", "calm"]
    await end(bench)


async def test_who_has_used_less_time_comes_first() -> None:
    bench = Bench(slots=1)
    slow = await bench.come("flood")
    flood = [await bench.come("flood") for _ in range(3)]
    calm = [await bench.come("calm") for _ in range(3)]
    await bench.finish(slow, 5.0)
    for task in calm:
        await bench.finish(task, 0.1)
    assert bench.order == ["flood", "calm", "calm", "calm", "flood"]
    assert not flood[0].done()
    await end(bench)


async def test_a_newcomer_has_no_credit_for_the_time_before_it_came() -> None:
    bench = Bench(slots=1)
    first = await bench.come("old")
    waiting = await bench.come("old")
    bench.now += 100.0
    new = [await bench.come("new") for _ in range(3)]
    await bench.finish(first, 0.0)
    await bench.finish(new[0], 1.0)
    await bench.finish(new[1], 200.0)
    assert bench.order == ["old", "new", "new", "old"]
    assert not waiting.done()
    await end(bench)


async def test_a_full_queue_drops_the_newest_job_of_the_longest_queue() -> None:
    bench = Bench(slots=1, max_waiting=3)
    await bench.come("flood")
    flood = [await bench.come("flood") for _ in range(3)]
    calm = await bench.come("calm")
    assert not calm.done()
    assert isinstance(flood[2].exception(), PoolBusy)
    assert not flood[1].done()
    refused = await bench.come("flood")
    assert isinstance(refused.exception(), PoolBusy)
    await end(bench)


async def test_a_job_that_is_cancelled_while_it_waits_leaves_its_place() -> None:
    bench = Bench(slots=1)
    first = await bench.come("a")
    second = await bench.come("a")
    third = await bench.come("a")
    second.cancel()
    await bench.finish(first, 1.0)
    assert bench.order == ["a", "a"]
    await bench.finish(third, 1.0)
    await end(bench)


async def test_a_job_that_is_cancelled_as_it_is_given_a_slot_passes_it_on() -> None:
    bench = Bench(slots=1)
    first = await bench.come("a")
    second = await bench.come("b")
    third = await bench.come("c")
    bench.running[first].set()
    await first
    second.cancel()
    await settle()
    assert bench.order[-1] in ("b", "c")
    await bench.finish(second, 0.0)
    await settle()
    assert bench.order[-1] == "c"
    await bench.finish(third, 0.0)
    await end(bench)


async def test_jobs_that_are_cancelled_together_leave_their_slot_to_others() -> None:
    bench = Bench(slots=1)
    jobs = [await bench.come(tenant) for tenant in "aab"]
    for task in jobs:
        task.cancel()  # the first one gives its slot back before the others have run
    await settle()
    other = await bench.come("c")
    assert bench.order == ["a", "c"]
    await bench.finish(other, 1.0)
    await end(bench)


async def test_a_full_queue_may_have_a_job_that_is_cancelled() -> None:
    bench = Bench(slots=1, max_waiting=2)
    first = await bench.come("a")
    _, newest = await bench.come("b"), await bench.come("b")
    other = bench.begin("c")
    newest.cancel()  # which it hears of after the other one has come
    await settle()
    assert newest.cancelled()
    await bench.finish(first, 1.0)
    assert bench.order == ["a", "b"]
    assert not other.done()
    await end(bench)


async def test_a_tenant_gets_back_a_slot_that_it_has_had_before_one_of_another() -> None:
    bench = Bench(slots=3)
    had: dict[str, set[str]] = {"one": set(), "other": set()}
    for tenant in ("one", "other", "other", "one", "one", "other"):
        async with bench.turns.turn(tenant) as slot:
            had[tenant].add(slot)
    assert len(had["one"]) == len(had["other"]) == 1
    assert had["one"] != had["other"]
