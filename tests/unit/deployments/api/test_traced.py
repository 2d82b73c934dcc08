"""Calls of replicas, and requests by handle, with spans around them."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import pytest
from opentelemetry.trace import StatusCode

from deployments.api.traced import TracedCalls, TracedEngines
from deployments.errors import ApiError, unavailable
from model_service.messages import Call, Endpoint
from model_service.replies import ENGINE_DEAD, Failure, Head
from router.turns.progress import Progress, Routed
from tests.recorded_spans import SAMPLED, UNSAMPLED, RecordedSpans, own, parent, told

CALL = Call(Endpoint.CHAT, "id", {}, None, prompt_tokens=12)
Item = Head | Failure | str


class ScriptedEngines:
    """Remembers its calls, says where they go, and answers with these items; an exception among them is raised."""

    def __init__(self, *items: Item | Exception, routed: Routed | None = None) -> None:
        self.calls: list[Call] = []
        self._items = items
        self._routed = routed

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Item, None]:
        self.calls.append(call)
        if self._routed is not None and isinstance(call.progress, Progress) and call.progress.routed is not None:
            call.progress.routed(self._routed)
        for item in self._items:
            if isinstance(item, Exception):
                raise item
            yield item


async def all_of(items: AsyncGenerator[Item, None]) -> list[Item]:
    return [item async for item in items]


async def test_a_call_tells_the_replica_its_span_and_where_it_was_sent() -> None:
    recorded = RecordedSpans()
    engines = ScriptedEngines(Head(200, stream=True), "a", "b", routed=Routed("second", 0.25, "first", 1))
    items: Sequence[Item] = [Head(200, stream=True), "a", "b"]
    assert await all_of(TracedEngines(engines, recorded.tracing).ask(CALL, "key")) == items
    call, route = recorded.one("call"), recorded.one("route")
    assert engines.calls[0].trace.split("-")[2] == own(call)
    assert told(call) == {"prompt_tokens": 12, "again": False, "http.response.status_code": 200, "pieces": 2}
    assert [event.name for event in call.events] == ["first piece"]
    assert parent(route) == own(call)
    assert told(route) == {"replica": "second", "first_rank": "first", "passed_over": 1, "waited_ms": 250.0}


@pytest.mark.parametrize(
    ("items", "what"),
    [
        ([Failure(ENGINE_DEAD, "the engine process has ended")], ENGINE_DEAD),
        ([Head(200, stream=True), unavailable("All are busy.", "model_busy")], "model_busy"),
    ],
)
async def test_a_call_that_fails_says_why(items: Sequence[Item | Exception], what: str) -> None:
    recorded = RecordedSpans()
    with suppress(ApiError):
        await all_of(TracedEngines(ScriptedEngines(*items), recorded.tracing).ask(CALL, ""))
    assert recorded.one("call").status.description == what


async def test_a_call_that_nobody_waits_for_any_more_is_no_fault() -> None:
    recorded = RecordedSpans()
    async with aclosing(TracedEngines(ScriptedEngines(Head(200, stream=True), "a", "b"), recorded.tracing).ask(CALL, "")) as items:
        await anext(items)
    call = recorded.one("call")
    assert call.status.status_code is StatusCode.UNSET
    assert [event.name for event in call.events] == ["not wanted any more"]


async def test_a_call_that_is_not_traced_is_handed_on_as_it_is() -> None:
    recorded = RecordedSpans()
    engines = ScriptedEngines("a")
    with recorded.tracing.span("request", parent=UNSAMPLED):
        assert await all_of(TracedEngines(engines, recorded.tracing).ask(CALL, "")) == ["a"]
    assert recorded.spans == []
    assert engines.calls[0].trace.endswith("-00")
    assert engines.calls[0].progress is None


async def test_requests_by_handle_are_below_their_callers_span_and_leave_the_callers_context_alone() -> None:
    recorded = RecordedSpans()

    async def answered() -> AsyncGenerator[Head | str, None]:
        with recorded.tracing.span("work"):
            pass
        yield Head(200, stream=True)
        recorded.tracing.span("later").end()
        yield "a"

    before = dict(contextvars.copy_context())
    async with aclosing(TracedCalls(recorded.tracing).answered(answered(), Endpoint.CHAT, SAMPLED)) as items:
        async for _ in items:
            assert dict(contextvars.copy_context()) == before
    request = recorded.one("request")
    assert parent(request) == SAMPLED.split("-")[2]
    assert parent(recorded.one("work")) == parent(recorded.one("later")) == own(request)
