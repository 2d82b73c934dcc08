"""Requests of a tenant that come at once begin one after another; and who is refused cannot ask again at once."""

from __future__ import annotations

import asyncio

from deployments.api.bounds.admission import MAX_DELAYED_REFUSALS, WINDOW_S, AdmissionQueue, RefusalDelay


async def test_a_request_begins_at_once_beside_thousands_of_another_tenant() -> None:
    admissions, begun = AdmissionQueue(), list[str]()

    async def begin(tenant: str) -> None:
        await admissions.admit(tenant)
        begun.append(tenant)

    flood = [asyncio.create_task(begin("flood")) for _ in range(100)]
    await asyncio.sleep(0)
    await begin("light")
    assert begun.index("light") <= 1
    await asyncio.gather(*flood)
    assert len(begun) == 101
    await begin("again")


async def test_one_of_a_tenant_begins_in_a_window() -> None:
    admissions, begun = AdmissionQueue(), list[float]()
    loop = asyncio.get_running_loop()

    async def begin() -> None:
        await admissions.admit("one")
        begun.append(loop.time())

    await admissions.admit("other")

    await asyncio.gather(*(begin() for _ in range(50)))
    assert begun[-1] - begun[0] >= 0.9 * 49 * WINDOW_S
    assert max(map(begun.count, begun)) == 1


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
