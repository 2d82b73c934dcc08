from __future__ import annotations

import asyncio

import pytest

from deployments.grammars.prepared import FRESH_S, STALE_S, STOPGAP_FRESH_S, PreparedGrammars
from grammar_service.errors import CompileTimeout, MaskcastError, PoolUnavailable
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest, Prepared
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution, resolve
from grammar_service.spec import GrammarSpec
from grammar_service.warning import LONGEST
from tests.driving import schema_spec

SPEC = schema_spec({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})


class HeldPool:
    """Answers when it is let go; with the stopgap, or an error, if it is told to."""

    def __init__(self) -> None:
        self.asked: list[CompileRequest] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.resolved: list[GrammarSpec] = []
        self.cold = False
        self.error: MaskcastError | None = None

    async def prepare(self, request: CompileRequest) -> Prepared:
        self.asked.append(request)
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        if self.cold and request.stopgap is not None:
            return Prepared(request.stopgap.key, request.stopgap.backend)
        return Prepared(request.key, request.backend)

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax) -> Resolution:
        self.resolved.append(spec)
        return resolve(spec, Limits(), "f")


class Timed:
    """Grammars, whose time is `now`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pool = HeldPool()
        self.grammars = PreparedGrammars(self.pool, Limits(), "f", clock=lambda: self.now)


@pytest.fixture
def timed() -> Timed:
    return Timed()


async def test_after_a_minute_the_pool_is_asked_once_behind_requests_that_go_on(timed: Timed) -> None:
    grammars, pool = timed.grammars, timed.pool
    first = await grammars.ready(SPEC)
    timed.now = FRESH_S
    pool.answers.clear()
    for _ in range(3):
        again = await asyncio.wait_for(grammars.ready(SPEC, "tenant", deadline_s=0.1), 5)
        assert (again.key, again.backend, again.routing_key) == (first.key, first.backend, first.routing_key)
        await asyncio.sleep(0)
    assert len(pool.asked) == 2
    refresh = pool.asked[1]
    assert (refresh.key, refresh.spec, refresh.tenant, refresh.deadline_s) == (first.key, SPEC, "tenant", None)
    pool.answers.set()
    await _until_idle()
    await grammars.ready(SPEC)
    assert len(pool.asked) == 2, "it counts for another minute"
    timed.now = 2 * FRESH_S
    await grammars.ready(SPEC, pinned=True)
    await _until_idle()
    assert [request.pinned for request in pool.asked] == [False, False, True]


async def test_a_stopgap_is_not_used_beyond_its_time(timed: Timed) -> None:
    timed.pool.cold = True
    stopgap = await timed.grammars.ready(SPEC)
    assert stopgap.key != stopgap.routing_key
    timed.pool.cold = False
    timed.now = STOPGAP_FRESH_S
    compiled = await timed.grammars.ready(SPEC)
    assert compiled.key == compiled.routing_key == stopgap.routing_key


async def test_what_was_last_asked_for_long_ago_waits_for_the_pool(timed: Timed) -> None:
    await timed.grammars.ready(SPEC)
    timed.pool.cold = True
    timed.now = FRESH_S + STALE_S
    assert (await timed.grammars.ready(SPEC)).backend == "llguidance"


async def test_what_the_pool_refuses_behind_a_request_is_told_to_the_next_one(timed: Timed) -> None:
    await timed.grammars.ready(SPEC)
    timed.now, timed.pool.error = FRESH_S, CompileTimeout("too slow now")
    await timed.grammars.ready(SPEC)
    await _until_idle()
    with pytest.raises(CompileTimeout):
        await timed.grammars.ready(SPEC)


async def test_known_grammars_are_used_while_the_pool_is_away_and_it_is_asked_again(timed: Timed) -> None:
    await timed.grammars.ready(SPEC)
    timed.now, timed.pool.error = FRESH_S, PoolUnavailable("all gone")
    for _ in range(2):
        await timed.grammars.ready(SPEC)
        await _until_idle()
    assert len(timed.pool.asked) == 3


async def test_closing_ends_what_is_asked_behind_requests(timed: Timed) -> None:
    await timed.grammars.ready(SPEC)
    timed.now = FRESH_S
    timed.pool.answers.clear()
    before = asyncio.all_tasks()
    await timed.grammars.ready(SPEC)
    assert len(asyncio.all_tasks() - before) == 1
    await timed.grammars.close()
    assert not asyncio.all_tasks() - before


async def _until_idle() -> None:
    """What was started has ended."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others, return_exceptions=True)


async def test_only_what_is_quick_is_resolved_on_the_event_loop(timed: Timed) -> None:
    await timed.grammars.ready(SPEC)
    assert timed.pool.resolved == []
    combined = schema_spec({"oneOf": [{"type": "string"}, {"type": "null"}]})
    for _ in range(3):
        await timed.grammars.ready(combined)
    assert timed.pool.resolved == [combined]


async def test_what_is_remembered_is_bounded_by_what_it_takes(timed: Timed) -> None:
    long = "x" * 10_000
    for number in range(20):
        ready = await timed.grammars.ready(schema_spec({"type": "object", "properties": {f"{long}{number}": {"unknown": 1}}}))
    assert len(ready.warnings) == 1
    assert max(len(warning.pointer) for warning in ready.warnings) <= LONGEST
