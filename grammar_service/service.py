"""One compile replica: memory, Redis, or the sandbox, each key once at a time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from grammar_service.backends import CompiledPayload
from grammar_service.behind import Behind
from grammar_service.cache.tiered import TieredCache
from grammar_service.counters import CompilerCounters
from grammar_service.errors import CompileTimeout, GrammarError, MaskcastError
from grammar_service.head_start import HEAD_START_S, found_or_made
from grammar_service.messages import SMALL_BYTES, Compiled, CompileRequest, Refusal, Source
from grammar_service.refusals import LASTING
from grammar_service.resolve import ResolvedGrammar
from grammar_service.resting import Resting
from grammar_service.sandbox import QUICK, Sandbox, SandboxSettings
from grammar_service.seal import Seal
from grammar_service.single_flight import SingleFlight
from grammar_service.spec import GrammarSpec


class GrammarCompiler:
    """Answers every request with an artifact or a refusal. `secret` authenticates artifacts; `deadline_s` bounds one compile; Redis has
    `head_start_s` before compiling begins beside it.

    A request with a stopgap is answered with that one while its own artifact is still to be made; it is made all the same.
    """

    def __init__(
        self,
        tokenizer_path: str | Path,
        vocab_size: int | None,
        deadline_s: float,
        sandbox: SandboxSettings,
        cache: TieredCache,
        secret: bytes,
        head_start_s: float = HEAD_START_S,
    ) -> None:
        self._deadline_s = deadline_s
        self._head_start_s = head_start_s
        self._cache = cache
        self._seal = Seal(secret)
        self._sandbox = Sandbox(tokenizer_path, vocab_size, sandbox)
        self._flights: SingleFlight[Compiled] = SingleFlight()
        self._behind = Behind()
        self._resting = Resting(time.monotonic)
        self._counters = CompilerCounters()

    @property
    def fingerprint(self) -> str:
        """The tokenizer's fingerprint; empty before `start`."""
        return self._sandbox.fingerprint

    async def start(self) -> None:
        """Wait for warm compile children; may be called again. Raises PoolUnavailable."""
        await self._sandbox.start()
        self._seal.fingerprint = self.fingerprint

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """The artifact of the request's key or of its stopgap, or why there is none. Raises nothing but cancellation."""
        self._counters.requests += 1
        try:
            if not self.fingerprint:
                await self.start()
            compiled = await self._answer(request)
        except MaskcastError as error:
            self._counters.count(error)
            return Refusal.of(error)
        if request.pinned:
            self._cache.pin(request.key)
        return compiled

    async def resolve(self, spec: GrammarSpec, tenant: str) -> ResolvedGrammar | Refusal:
        """For specs that are too long to be resolved where other requests would wait. Raises nothing but cancellation."""
        try:
            return await self._sandbox.resolve(spec, self._deadline_s, tenant)
        except MaskcastError as error:
            self._counters.count(error)
            return Refusal.of(error)

    def unpin(self, key: str) -> None:
        """An artifact that was pinned may leave this replica's memory again."""
        self._cache.unpin(key)

    async def counters(self) -> dict[str, int]:
        """Counters that only grow: this replica's, its cache's, and how many children were replaced."""
        return {**self._counters.as_dict(), "children_replaced": self._sandbox.replaced, **self._cache.counters()}

    async def check_health(self) -> None:
        """Raises PoolUnavailable where no compile child can be had."""
        await self._sandbox.start()

    async def close(self) -> None:
        # First, so that no child seems to have crashed.
        await self._flights.close()
        await self._sandbox.close()
        await self._behind.close()
        await self._cache.close()

    async def _answer(self, request: CompileRequest) -> Compiled:
        quick = request.on_stopgap()
        if quick is not None:
            return await self._soonest(request, quick)
        if (held := await self._in_memory(request)) is not None:
            return held
        return await found_or_made(
            lambda: self._behind.go_on(self._find(request)),
            lambda: self._behind.go_on(self._fly(request)),
            # Asking takes about as long as making what is quickly made.
            0.0 if request.backend in QUICK else self._head_start_s,
        )

    async def _soonest(self, request: CompileRequest, quick: CompileRequest) -> Compiled:
        """The artifact where it can be had at once, else the stopgap, which is made while Redis is asked."""
        try:
            if (held := await self._in_memory(request)) is not None:
                return held
        except GrammarError:
            return await self._stopgap(quick)
        # In this order: while the child works, this process has time to ask.
        making = self._behind.go_on(self._stopgap(quick))
        finding = self._behind.go_on(self._find(request))
        await asyncio.wait((finding, making), return_when=asyncio.FIRST_COMPLETED)
        return await self._first(request, finding, making)

    async def _first(self, request: CompileRequest, finding: asyncio.Task[Compiled | None], making: asyncio.Task[Compiled]) -> Compiled:
        if finding.done() and finding.exception() is None and (found := finding.result()) is not None:
            return found
        try:
            compiled = await making
        except GrammarError:
            # The two backends see different faults: what the one refuses, the other may still compile.
            return await finding or await self._fly(request)
        # Not sooner: the two would take the processors from each other.
        self._behind.go_on(self._make_unless_found(request, finding))
        return compiled

    async def _stopgap(self, quick: CompileRequest) -> Compiled:
        """Redis knows nothing of it: asking takes about as long as making it, and much longer where Redis is slow."""
        compiled = await self._in_memory(quick) or await self._flights.run(quick.key, lambda: self._make(quick, shared=False))
        self._counters.stopgaps += 1
        return compiled

    async def _fly(self, request: CompileRequest) -> Compiled:
        """The artifact from the flight of its key; one that another request gave less time is not the last word."""
        joined = request.key in self._flights
        try:
            return await self._flights.run(request.key, lambda: self._make(request))
        except CompileTimeout:
            if not joined:
                raise
        return await self._flights.run(request.key, lambda: self._make(request))

    async def _in_memory(self, request: CompileRequest) -> Compiled | None:
        """Raises GrammarError: it is known that the grammar does not compile."""
        return await self._find(request) if self._cache.held(request.key) is not None else None

    async def _find(self, request: CompileRequest) -> Compiled | None:
        """Raises GrammarError: it is known that the grammar does not compile."""
        started = time.perf_counter()
        found = await self._cache.get(request.key, lambda blob: self._seal.is_intact(blob, request.key))
        return self._opened(request, found.blob, found.tier, started) if found else None

    def _opened(self, request: CompileRequest, blob: bytes, source: Source, started: float) -> Compiled:
        if (refusal := self._seal.refusal_in(blob, request.key)) is not None:
            self._counters.remembered += 1
            raise refusal
        return Compiled(request.key, blob, source, _ms_since(started), request.backend)

    async def _make_unless_found(self, request: CompileRequest, finding: asyncio.Task[Compiled | None]) -> None:
        """For the requests that follow; a grammar that did not compile is left alone for a while."""
        try:
            if await finding is None and request.key not in self._resting:
                await self._flights.run(request.key, lambda: self._make(request))
        except MaskcastError as error:
            self._counters.count(error)
            self._resting.rest(request.key)

    async def _make(self, request: CompileRequest, shared: bool = True) -> Compiled:
        started = time.perf_counter()
        if (blob := self._cache.held(request.key)) is not None:
            # Another flight of the key has landed while this request waited for Redis.
            return self._opened(request, blob, "memory", started)
        try:
            payload = await self._sandbox.compile(request, self._deadline(request.deadline_s))
        except LASTING as error:
            self._keep(request.key, self._seal.refusal(request, error), shared)
            raise
        blob = await self._sealed(request, payload)
        self._counters.compiled += 1
        self._keep(request.key, blob, shared)
        return Compiled(request.key, blob, "compiled", _ms_since(started), request.backend)

    async def _sealed(self, request: CompileRequest, payload: CompiledPayload) -> bytes:
        """In a thread, where it takes longer than changing threads does."""
        if len(payload.data) <= SMALL_BYTES:
            return self._seal.artifact(request, payload)
        return await asyncio.to_thread(self._seal.artifact, request, payload)

    def _deadline(self, asked_s: float | None) -> float:
        return self._deadline_s if asked_s is None else min(asked_s, self._deadline_s)

    def _keep(self, key: str, blob: bytes, shared: bool) -> None:
        """The answer does not wait for Redis."""
        self._cache.keep(key, blob)
        if shared:
            self._behind.go_on(self._cache.publish(key, blob))


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
