"""Large bodies are worked on one at a time, each tenant's in its turn."""

from __future__ import annotations

import asyncio
import threading

import pytest

from deployments.api.bounds.aside import Aside


async def test_a_flood_of_large_bodies_lets_a_neighbours_pass() -> None:
    aside, order, go = Aside(), list[str](), threading.Event()

    def work(name: str) -> str:
        if not order:
            go.wait(10)
        order.append(name)
        return name

    flood = [asyncio.create_task(aside.run("flood", work, f"flood {number}")) for number in range(5)]
    await asyncio.sleep(0)
    neighbour = asyncio.create_task(aside.run("neighbour", work, "neighbour"))
    await asyncio.sleep(0)
    go.set()
    assert await neighbour == "neighbour"
    assert await asyncio.gather(*flood) == [f"flood {number}" for number in range(5)]
    assert order.index("neighbour") == 1


async def test_a_fault_is_the_callers() -> None:
    aside = Aside()
    with pytest.raises(ValueError, match="invalid literal"):
        await aside.run("", int, "no number")
    assert await aside.run("", int, "1") == 1
