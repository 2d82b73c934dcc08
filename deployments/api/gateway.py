"""What happens to one request, whether it came over HTTP or by a Ray handle."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

from deployments.access.caller import ANYBODY, Caller
from deployments.access.charges import TokenMeter
from deployments.access.prefixes import SALT, TenantPrefixes
from deployments.api.bounds.fatal_calls import FatalCalls
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.call_facts import CallFacts
from deployments.api.checking import AnswerChecker, Check
from deployments.api.confidence import add_field_confidence
from deployments.api.constraining import Constraints
from deployments.api.engine_calls import Engines, is_refused
from deployments.api.engine_errors import with_codes
from deployments.api.protocol import ParsedRequest, RequestReader
from deployments.api.warned import WarnedAnswer
from deployments.constraints.forms import FORMAT, NamedGrammar, Requested, refusal, warnings_of
from deployments.errors import AnswerLost, ApiError, bad_request, unavailable
from grammar_service.errors import MaskcastError
from grammar_service.messages import ReadyGrammar, Refusal
from grammar_service.sandbox.background_thread import BackgroundThread
from grammar_service.warning import ConstraintWarning, first
from model_service.messages import Call, Endpoint
from model_service.replies import ENGINE_DEAD, Failure, Head
from router.turns.progress import Progress

ATTEMPTS = 2
EMPTY_CHAT = [{"role": "user", "content": ""}]


class Gateway:
    """`constraints` makes grammars ready, `engines` are asked for answers; `facts` tells their router what a call will take."""

    def __init__(
        self,
        reader: RequestReader,
        constraints: Constraints,
        engines: Engines,
        facts: CallFacts,
        checker: AnswerChecker,
        prefixes: TenantPrefixes,
        background: BackgroundThread,
    ) -> None:
        self._reader = reader
        self._constraints = constraints
        self._facts = facts
        self._checker = checker
        self._engines = engines
        self._prefixes = prefixes
        self._fatal = FatalCalls()
        self._background = background

    async def answer(
        self,
        endpoint: Endpoint,
        body: Mapping[str, Any],
        caller: Caller = ANYBODY,
        size: int = 0,
        meter: TokenMeter | None = None,
        warnings: Iterable[ConstraintWarning] = (),
    ) -> AsyncGenerator[Head | str, None]:
        """A head, then the body in pieces. Requests of one tenant wait for their turns together, by its weight, and its prompts share what
        they begin with. `size` is the body's, in bytes; `meter` hears what the engines do; the answer tells `warnings` with its own.

        Raises:
            ApiError: before the head, anything that keeps the request from being answered.
        """
        request, tenant = await self._read(endpoint, body, caller, size), caller.name
        self._fatal.check(request)
        wished = [await self._wished(request, one, tenant) for one in request.wished]
        grammar = await self._constraints.ready(request, tenant)
        left_out = grammar.left_out if grammar else ()
        told = warnings_of(grammar, request.requested) if grammar else ()
        warned = WarnedAnswer(
            chain(warnings, request.warnings, told, *(each.warnings for each in wished)), unchecked=bool(left_out) and request.stream
        )
        made = partial(self._call, grammar=grammar, wished=wished, tenant=tenant, weight=caller.weight)
        answered = partial(self._answered, made=made, meter=meter or TokenMeter(0), tenant=tenant)
        items = answered(request)
        if left_out and isinstance(request.requested, Requested):
            check = Check(request.requested.spec, tenant)
            items = self._checker.answer(answered, request, check)
        async with aclosing(items):
            async for item in items:
                yield warned.item(item)

    async def check(self, body: Mapping[str, Any], caller: Caller = ANYBODY, size: int = 0) -> dict[str, Any]:
        """How the constraint of a chat with this `body` would be kept; nothing is asked of a model, and there need be no messages. What is
        compiled for it is kept, as for a request.

        Raises:
            ApiError: there is none, or what the request itself would get.
        """
        request, began = await self._read(Endpoint.CHAT, {"messages": EMPTY_CHAT, **body}, caller, size), time.monotonic()
        grammar = await self._constraints.ready(request, caller.name)
        if grammar is None:
            raise bad_request("There is no constraint in the request.", FORMAT)
        told = first(chain(request.warnings, warnings_of(grammar, request.requested)))
        return {
            "object": "grammar.check",
            "kind": str(grammar.spec.kind),
            "backend": grammar.backend,
            "stopgap": grammar.key != grammar.routing_key,
            "waited_ms": round((time.monotonic() - began) * 1000, 3),
            "checked_afterwards": list(grammar.left_out),
            **({"maskcast": {"warnings": [warning.body() for warning in told]}} if told else {}),
        }

    async def _read(self, endpoint: Endpoint, body: Mapping[str, Any], caller: Caller, size: int) -> ParsedRequest:
        if size <= LARGE_BODY:
            return self._reader.read(endpoint, body, caller)
        return await self._background.run(caller.name, self._reader.read, endpoint, body, caller)

    async def _wished(self, request: ParsedRequest, asked: Requested | NamedGrammar, tenant: str) -> ReadyGrammar:
        """A grammar that a reward goes by: made ready as a constraint is, and refused as one."""
        grammar = await self._constraints.ready(replace(request, requested=asked, check=False), tenant)
        assert grammar is not None, "it has been asked for"
        return grammar

    def _answered(
        self, request: ParsedRequest, made: Callable[[ParsedRequest], Call], meter: TokenMeter, tenant: str
    ) -> AsyncGenerator[Head | str, None]:
        items = self._retried(request, made, meter)
        if request.confidence is None:
            return items

        async def run(work: Callable[[str], str], text: str) -> str:
            return work(text) if len(text) <= LARGE_BODY else await self._background.run(tenant, work, text)

        return add_field_confidence(items, request.confidence, request.stream, run)

    async def _retried(
        self, request: ParsedRequest, made: Callable[[ParsedRequest], Call], meter: TokenMeter
    ) -> AsyncGenerator[Head | str, None]:
        call = made(request)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with aclosing(self._metered(call, request, meter)) as items:
                    async for item in items:
                        yield item
                return
            except _ReplicaLost as lost:
                if lost.computing:
                    self._fatal.ended(request, lost.where)
                # Nothing has been sent yet, so that another replica can answer the same request. One of many sequences may be what ended
                # this one, and would take as many seats there.
                if attempt == ATTEMPTS or (request.sequences > 1 and lost.computing):
                    raise unavailable("The model replica ended; try again in a moment.", ENGINE_DEAD, 5) from lost
                call = replace(call, avoid=lost.replica)

    def _call(
        self, request: ParsedRequest, grammar: ReadyGrammar | None, wished: Sequence[ReadyGrammar], tenant: str, weight: float
    ) -> Call:
        forced = self._facts.forced(grammar.routing_key) if grammar else 0
        prompt, body = self._facts.prompt(request.body), self._prefixes.salted(request.body, tenant)
        salt = body.get(SALT)
        return Call(
            request.endpoint,
            request.request_id,
            body,
            grammar,
            request.mark_forced,
            prompt.tokens,
            forced,
            f"{prompt.prefix}{salt[:16]}" if prompt.prefix and isinstance(salt, str) else prompt.prefix,
            sequences=request.seats,
            tenant=tenant,
            weight=weight,
            answer_tokens=self._facts.answers(request.endpoint, request.body, prompt.tokens),
            lookahead=request.lookahead,
            wished=tuple(wished),
        )

    async def _metered(self, call: Call, request: ParsedRequest, meter: TokenMeter) -> AsyncGenerator[Head | str, None]:
        """The same, and the meter hears of it. Who left before the call had its turn has cost nothing."""
        progress = Progress()
        meter.asked()
        try:
            async with aclosing(self._attempt(replace(call, progress=progress), request, meter)) as items:
                async for item in items:
                    yield item
        except _ReplicaLost:
            meter.spared()
            raise
        except (GeneratorExit, asyncio.CancelledError):
            if progress.waits:
                meter.spared()
            raise

    async def _attempt(self, call: Call, request: ParsedRequest, meter: TokenMeter) -> AsyncGenerator[Head | str, None]:
        started = False
        key = call.constraint.routing_key if call.constraint else ""
        try:
            async with aclosing(self._engines.ask(call, key)) as items:
                async for item in items:
                    if is_refused(item) and not started:
                        meter.spared()
                    if isinstance(item, Failure):
                        yield self._failed(item, request, started)
                    else:
                        if isinstance(item, str):
                            meter.piece(item)
                            if key:
                                self._facts.answered(key, item)
                        yield with_codes(item) if isinstance(item, str) else item
                        started = True
        except BackPressureError:
            meter.spared()
            raise unavailable("All model replicas are busy; try again in a moment.", "model_busy") from None
        except (RayActorError, DeploymentUnavailableError, AnswerLost) as error:
            if not started:
                # Ray Serve asks a replica that has died no more, and one that does not answer only after it has answered a probe.
                computing = not isinstance(error, DeploymentUnavailableError)
                raise _ReplicaLost(where=str(getattr(error, "actor_id", "")), computing=computing) from error
            yield _error_event(unavailable("The model replica ended in the middle of the answer.", ENGINE_DEAD, 5))

    def _failed(self, failure: Failure, request: ParsedRequest, started: bool) -> str:
        if failure.code == ENGINE_DEAD:
            if not started:
                raise _ReplicaLost(failure.replica, failure.replica, failure.computing)
            return _error_event(unavailable("The engine ended in the middle of the answer.", ENGINE_DEAD, 5))
        raise refusal(Refusal(failure.code, failure.message, failure.pointer).error(), request.requested)


class _ReplicaLost(MaskcastError):
    """The replica, or its engine, ended before the first byte. Where only the engine did, the replica would be chosen again until it has
    failed its health check, and says its name. `where` tells replicas apart as well; `computing`: it had the request."""

    def __init__(self, replica: str = "", where: str = "", computing: bool = True) -> None:
        super().__init__(replica)
        self.replica = replica
        self.where = where
        self.computing = computing


def _error_event(error: ApiError) -> str:
    return f"data: {json.dumps(error.body())}\n\n"
