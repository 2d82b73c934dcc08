"""Wrappers that open a span around each call of the ingress to another part; used where requests are traced."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from deployments.api.constraining import Constraints
from deployments.api.engine_calls import Engines
from deployments.api.protocol import ParsedRequest
from deployments.constraints.forms import NamedGrammar
from deployments.tracing.tracing import Span, Tracing, code_of
from grammar_service.messages import ReadyGrammar
from model_service.messages import Call
from model_service.replies import Failure, Head
from router.turns.progress import Progress, Routed

Items = AsyncGenerator[Head | str, None]
KEY_CHARACTERS = 16
"""Of a grammar's key, which is a digest."""


class TracedConstraints:
    """`constraint`: which form and kind, which backend and key came of it, and from which tier: this process (`ingress`), or the memory of
    the compile replica, Redis, or a compile."""

    def __init__(self, constraints: Constraints, tracing: Tracing) -> None:
        self._constraints = constraints
        self._tracing = tracing

    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        """See `Constraints`."""
        self._tracing.current().set(request_id=request.request_id, tenant=tenant, stream=request.stream, sequences=request.sequences)
        if (asked := request.requested) is None:
            return await self._constraints.ready(request, tenant)
        kind = "named" if isinstance(asked, NamedGrammar) else str(asked.spec.kind)
        with self._tracing.span("constraint", form=asked.field, kind=kind, tier="ingress") as span:
            grammar = await self._constraints.ready(request, tenant)
            if grammar is not None:
                span.set(key=grammar.routing_key[:KEY_CHARACTERS], backend=grammar.backend, stopgap=grammar.key != grammar.routing_key)
                span.set(left_out=len(grammar.left_out))
        return grammar


class TracedEngines:
    """`call`: one for each replica that is asked, from the request for it to the last piece; below it `route`, until the router, or the
    room in front of a single engine, has let it go."""

    def __init__(self, engines: Engines, tracing: Tracing) -> None:
        self._engines = engines
        self._tracing = tracing

    def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        """See `Engines`."""
        span = self._tracing.span("call", "client", prompt_tokens=call.prompt_tokens, again=bool(call.avoid))
        call = replace(call, trace=span.traceparent)
        if not span.is_recording:
            return self._engines.ask(call, key)
        began_ns = time.time_ns()
        progress = call.progress if isinstance(call.progress, Progress) else Progress()
        progress.routed = lambda routed: self._routed(span, routed, began_ns)
        return _watched(self._engines.ask(replace(call, progress=progress), key), span)

    def _routed(self, span: Span, routed: Routed, began_ns: int) -> None:
        route = self._tracing.span("route", parent=span.traceparent, began_ns=began_ns, waited_ms=round(routed.waited_s * 1000, 3))
        if routed.replica:
            route.set(replica=routed.replica, first_rank=routed.first_rank, passed_over=routed.passed_over)
        route.end()


class TracedCalls:
    """`request`: what a job asks by a Ray handle, which names its own span in `traceparent`."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def answered(self, items: Items, endpoint: str, traceparent: str) -> Items:
        """The same items; what they come from is below the new span."""
        return self._below(items, self._tracing.span("request", "server", traceparent, endpoint=endpoint))

    async def _below(self, items: Items, span: Span) -> Items:
        try:
            async with aclosing(items):
                while True:
                    # Not over a `yield`: whoever takes the item goes on in the context that is current then.
                    with span.current():
                        item = await anext(items, None)
                    if item is None:
                        return
                    yield item
        except BaseException as error:
            span.fail(code_of(error))
            raise
        finally:
            span.end()


async def _watched(items: AsyncGenerator[Head | Failure | str, None], span: Span) -> AsyncGenerator[Head | Failure | str, None]:
    pieces = 0
    try:
        async with aclosing(items):
            async for item in items:
                if isinstance(item, Failure):
                    span.fail(item.code)
                elif isinstance(item, Head):
                    span.standard("http.response.status_code", int(item.status))
                else:
                    pieces += 1
                    if pieces == 1:
                        span.mark("first piece")
                yield item
    except GeneratorExit:
        span.mark("not wanted any more")
        raise
    except BaseException as error:
        span.fail(code_of(error))
        raise
    finally:
        span.set(pieces=pieces)
        span.end()
