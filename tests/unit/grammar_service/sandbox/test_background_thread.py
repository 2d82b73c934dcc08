"""Large bodies are worked on one at a time, each tenant's in its turn."""

from __future__ import annotations

import asyncio
import threading

import pytest

from grammar_service.sandbox.background_thread import BackgroundThread


async def test_a_flood_of_large_bodies_lets_a_neighbours_pass() -> None:
    background, order, go = BackgroundThread(), list[str](), threading.Event()

    def work(name: str) -> str:
        if not order:
            go.wait(10)
        order.append(name)
        return name

    flood = [asyncio.create_task(background.run("flood", work, f"flood {number}")) for number in range(5)]
    await asyncio.sleep(0)
    neighbour = asyncio.create_task(background.run("neighbour", work, "neighbour"))
    await asyncio.sleep(0)
    go.set()
    assert await neighbour == "neighbour"
    assert await asyncio.gather(*flood) == [f"flood {number}" for number in range(5)]
    assert order.index("neighbour") == 1


async def test_a_fault_is_the_callers() -> None:
    background = BackgroundThread()
    with pytest.raises(ValueError, match="invalid literal"):
        await background.run("", int, "no number")
    assert await background.run("", int, "1") == 1
