"""What a call costs its tenant's turns where nobody waits for its answer any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from deployments.api.engine_calls import OwnEngine
from model_service.messages import Call, Endpoint
from model_service.replies import Failure, Head
from router.turns.progress import Progress
from router.turns.shares import PROMPT, SAMPLED

EVENT = 'data: {"choices":[{"text":"a"}]}\n\n'
USAGE = '{"choices":[],"usage":{"prompt_tokens":10,"total_tokens":14,"completion_tokens":4}}'


class Says:
    """A replica that answers so, and then computes without end."""

    def __init__(self, *items: Head | Failure | str) -> None:
        self._items = items
        self.computing = asyncio.Event()

    async def respond(self, call: Call) -> AsyncGenerator[Head | Failure | str, None]:
        for item in self._items:
            yield item
        self.computing.set()
        await asyncio.Event().wait()


def call_of(progress: object = None, **body: Any) -> Call:
    return Call(Endpoint.COMPLETION, "id", body, None, prompt_tokens=10, sequences=2, tenant="me", answer_tokens=600, progress=progress)


async def cost_of(replica: Says, call: Call, leave_after: int | None = None) -> float:
    """Of a call whose client leaves after so many items, or while the replica computes."""
    engine = OwnEngine(replica, 4, 8)
    shares = engine._room._line.shares
    if leave_after is not None:
        async with aclosing(engine.ask(call, "")) as items:
            for _ in range(leave_after):
                await anext(items)
    else:
        task = asyncio.create_task(_drain(engine, call))
        await replica.computing.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return shares.used("me") - PROMPT * 10


async def _drain(engine: OwnEngine, call: Call) -> None:
    async for _ in engine.ask(call, ""):
        pass


@pytest.mark.parametrize("body", [{}, {"stream": True, "stream_interval": 100_000}])
async def test_an_answer_that_nobody_waits_for_costs_what_it_may_have_taken(body: dict[str, Any]) -> None:
    assert await cost_of(Says(), call_of(**body)) == SAMPLED * 600


async def test_a_stream_of_tokens_that_is_not_waited_for_costs_those_that_have_come() -> None:
    assert await cost_of(Says(Head(200, stream=True), EVENT, EVENT), call_of(stream=True)) == SAMPLED * 2


async def test_a_stream_that_was_not_read_costs_what_may_have_piled_up() -> None:
    assert await cost_of(Says(Head(200, stream=True), EVENT, EVENT), call_of(stream=True), leave_after=2) == SAMPLED * 600


async def test_an_answer_that_has_told_its_usage_costs_that() -> None:
    assert await cost_of(Says(Head(200, stream=False), USAGE), call_of(), leave_after=2) == SAMPLED * 4


@pytest.mark.parametrize("said", [Head(400, stream=False), Failure("invalid_grammar", "no")])
async def test_what_is_refused_costs_nothing(said: Head | Failure) -> None:
    assert await cost_of(Says(said), call_of(), leave_after=1) == 0


async def test_a_call_waits_until_it_has_its_seats() -> None:
    engine, first, second = OwnEngine(replica := Says(), 4, 8), Progress(), Progress()
    tasks = [asyncio.create_task(_drain(engine, call_of(progress))) for progress in (first, second)]
    await replica.computing.wait()
    tasks.append(asyncio.create_task(_drain(engine, call_of(third := Progress()))))
    await asyncio.sleep(0)
    assert (first.waits, second.waits, third.waits) == (False, False, True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
