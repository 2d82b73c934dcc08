"""Requests that come at once begin one after another, tenants in turn; and who is refused cannot ask again at once."""

from __future__ import annotations

import asyncio

from deployments.api.bounds.admission import MAX_DELAYED_REFUSALS, AdmissionQueue, RefusalDelay


async def test_a_request_begins_before_another_tenants_that_came_in_thousands() -> None:
    admissions, begun = AdmissionQueue(), list[str]()

    async def begin(tenant: str) -> None:
        await admissions.admit(tenant)
        begun.append(tenant)

    flood = [asyncio.create_task(begin("flood")) for _ in range(1000)]
    await asyncio.sleep(0)
    await begin("light")
    assert begun.index("light") <= 3
    await asyncio.gather(*flood)
    assert len(begun) == 1001
    await begin("again")


async def test_few_begin_in_a_round_of_the_event_loop() -> None:
    admissions, begun = AdmissionQueue(), list[int]()

    async def begin(number: int) -> None:
        await admissions.admit("")
        begun.append(number)

    tasks = [asyncio.create_task(begin(number)) for number in range(50)]
    for round_ in range(10):
        await asyncio.sleep(0)
        assert len(begun) <= round_ + 1
    await asyncio.gather(*tasks)
    assert begun == [*range(50)]


async def test_who_leaves_while_waiting_takes_no_turn() -> None:
    admissions = AdmissionQueue()
    first, leaving, staying = (asyncio.create_task(admissions.admit("")) for _ in range(3))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(first, staying)
    assert leaving.cancelled()


async def test_refusals_come_late_but_not_more_than_so_many() -> None:
    over = asyncio.Event()

    async def pause(_: float) -> None:
        await over.wait()

    delay = RefusalDelay(pause)
    late = [asyncio.create_task(delay.wait()) for _ in range(MAX_DELAYED_REFUSALS)]
    await asyncio.sleep(0)
    await delay.wait()  # which is one too many
    assert not any(task.done() for task in late)
    over.set()
    await asyncio.gather(*late)
    over.clear()
    again = asyncio.create_task(delay.wait())
    await asyncio.sleep(0)
    assert not again.done()
    again.cancel()
