"""One compile replica: memory, Redis, or the sandbox, each key once at a time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from grammar_service.artifacts.artifact import AuthenticArtifact
from grammar_service.artifacts.cache.tiered import Found, TieredCache
from grammar_service.artifacts.refusals import LASTING
from grammar_service.artifacts.seal import Seal
from grammar_service.backends import CompiledPayload
from grammar_service.compiler.background import Resting
from grammar_service.compiler.counters import CompilerCounters, CompileTimes
from grammar_service.compiler.lookup import HEAD_START_S, Lookup
from grammar_service.compiler.resolutions import Resolutions
from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError, MaskcastError
from grammar_service.mac import Secret
from grammar_service.messages import SMALL_BYTES, AnswerCheck, Compiled, CompileRequest, Refusal, Verdicts
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.sandbox import QUICK, Sandbox, SandboxSettings
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource


class GrammarCompiler:
    """Answers every request with an artifact or a refusal. `secret` authenticates artifacts; `deadline_s` bounds one compile; Redis has
    `head_start_s` before compiling begins beside it. `times` hears how long things take.

    A request with a stopgap is answered with that one while its own artifact is still to be made; it is made all the same.
    """

    def __init__(
        self,
        tokenizer: str | Path | TokenizerSource,
        deadline_s: float,
        sandbox: SandboxSettings,
        cache: TieredCache,
        secret: Secret,
        head_start_s: float = HEAD_START_S,
        times: CompileTimes | None = None,
    ) -> None:
        self._deadline_s = deadline_s
        self._cache = cache
        self._seal = Seal(secret)
        self._sandbox = Sandbox(tokenizer, sandbox, None if times is None else times.waited)
        self._lookup = Lookup(cache, self._seal, head_start_s)
        self._resting = Resting(time.monotonic)
        self._resolutions = Resolutions()
        self._counters = CompilerCounters()
        self._times = times

    @property
    def fingerprint(self) -> str:
        """The tokenizer's fingerprint; empty before `start`."""
        return self._seal.fingerprint

    async def start(self) -> None:
        """Wait for warm compile children; may be called again. Raises PoolUnavailable."""
        await self._sandbox.start()
        self._seal.fingerprint = self._sandbox.fingerprint

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """The artifact of the request's key or of its stopgap, or why there is none. Raises nothing but cancellation."""
        self._counters.requests += 1
        try:
            if not self.fingerprint:
                await self.start()
            started = time.perf_counter()
            found = await self._answer(request)
        except MaskcastError as error:
            self._counters.count(error)
            return Refusal.of(error)
        if request.pinned:
            self._cache.pin(request.key)
        header, took_s = found.artifact.header, time.perf_counter() - started
        if self._times is not None:
            self._times.answered(found.source if header.key == request.key else "stopgap", header.backend, took_s)
        return Compiled(header.key, found.artifact.blob, found.source, took_s * 1000, header.backend)

    async def judge(self, check: AnswerCheck) -> Verdicts | Refusal:
        """What is wrong with finished answers. Raises nothing but cancellation."""
        try:
            return Verdicts(await self._sandbox.judge(check))
        except (CompileTimeout, CompileFailed):
            return Verdicts((f"it could not be checked within {check.deadline_s:g} s and the memory of a compile",) * len(check.answers))
        except MaskcastError as error:
            return Refusal.of(error)

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax = Relax.NOTHING) -> Resolution | Refusal:
        """For specs that are too long to be resolved where other requests would wait, and those of which something may be left out
        (`relax`). Raises nothing but cancellation."""
        known = self._resolutions.get(spec, tenant, relax)
        if known is not None:
            return known
        try:
            resolution = await self._sandbox.resolve(spec, self._deadline_s, tenant, relax)
        except MaskcastError as error:
            self._counters.count(error)
            refusal = Refusal.of(error)
            if isinstance(error, LASTING):
                self._resolutions.keep(spec, tenant, relax, refusal)
            return refusal
        self._resolutions.keep(spec, tenant, relax, resolution)
        return resolution

    async def counters(self) -> dict[str, int]:
        """Counters that only grow: this replica's, its cache's, how many children were replaced, and how many refusals `remembered`."""
        own = {"remembered": self._lookup.remembered, "children_replaced": self._sandbox.replaced}
        return {**self._counters.as_dict(), **own, **self._cache.counters()}

    async def check_health(self) -> None:
        """Raises PoolUnavailable where no compile child can be had."""
        await self._sandbox.start()

    async def close(self) -> None:
        # First, so that no child seems to have crashed.
        await self._lookup.cancel()
        await self._sandbox.close()
        await self._lookup.close()
        await self._cache.close()

    async def _answer(self, request: CompileRequest) -> Found:
        quick = request.on_stopgap()
        if quick is not None:
            return await self._soonest(request, quick)
        # A flight that another request of the tenant gave less time is not the last word.
        at_once = request.backend in QUICK
        return await self._lookup.get(request.key, lambda: self._make(request), at_once, request.tenant, again_after=(CompileTimeout,))

    async def _soonest(self, request: CompileRequest, quick: CompileRequest) -> Found:
        """The artifact where it can be had at once, else the stopgap, which is made while Redis is asked."""
        try:
            if (held := self._lookup.in_memory(request.key)) is not None:
                return held
        except GrammarError:
            return await self._stopgap(quick)
        # In this order: while the child works, this process has time to ask.
        making = self._lookup.background.start(self._stopgap(quick))
        finding = self._lookup.find(request.key)
        await asyncio.wait((finding, making), return_when=asyncio.FIRST_COMPLETED)
        return await self._first(request, finding, making)

    async def _first(self, request: CompileRequest, finding: asyncio.Task[Found | None], making: asyncio.Task[Found]) -> Found:
        if finding.done() and finding.exception() is None and (found := finding.result()) is not None:
            return found
        try:
            stopgap = await making
        except GrammarError:
            # The two backends see different faults: what the one refuses, the other may still compile.
            return await finding or await self._make_once(request)
        # Not sooner: the two would take the processors from each other.
        self._lookup.background.start(self._make_unless_found(request, finding))
        return stopgap

    async def _stopgap(self, quick: CompileRequest) -> Found:
        """Redis knows nothing of it: asking takes about as long as making it, and much longer where Redis is slow."""
        held = self._lookup.in_memory(quick.key)
        found = held or await self._lookup.make(quick.key, lambda: self._make(quick, shared=False), quick.tenant)
        self._counters.stopgaps += 1
        return found

    async def _make_unless_found(self, request: CompileRequest, finding: asyncio.Task[Found | None]) -> None:
        """For the requests that follow, so that it has the time of any; a grammar that did not compile is left alone for a while."""
        asked = replace(request, deadline_s=None)
        try:
            if await finding is None and request.key not in self._resting:
                await self._make_once(asked)
        except MaskcastError as error:
            self._counters.count(error)
            self._resting.rest(request.key)

    async def _make_once(self, request: CompileRequest) -> Found:
        return await self._lookup.make(request.key, lambda: self._make(request), request.tenant, again_after=(CompileTimeout,))

    async def _make(self, request: CompileRequest, shared: bool = True) -> AuthenticArtifact:
        """Or what another tenant's request has made while this one waited for its turn."""
        deadline_s = self._deadline(request.deadline_s)
        try:
            payload = await self._sandbox.compile(request, deadline_s, lambda: self._cache.held(request.key))
        except LASTING as error:
            self._keep(self._seal.refusal(request, error), shared)
            raise
        if isinstance(payload, AuthenticArtifact):
            return payload
        if self._times is not None:
            self._times.compiled(request.backend, payload.compile_ms / 1000, payload.load_ms / 1000)
        artifact = await self._sealed(request, payload)
        self._counters.compiled += 1
        self._keep(artifact, shared)
        return artifact

    async def _sealed(self, request: CompileRequest, payload: CompiledPayload) -> AuthenticArtifact:
        """In a thread, where it takes longer than changing threads does."""
        if len(payload.data) <= SMALL_BYTES:
            return self._seal.artifact(request, payload)
        return await asyncio.to_thread(self._seal.artifact, request, payload)

    def _deadline(self, asked_s: float | None) -> float:
        return self._deadline_s if asked_s is None else min(asked_s, self._deadline_s)

    def _keep(self, artifact: AuthenticArtifact, shared: bool) -> None:
        """The answer does not wait for Redis."""
        self._cache.keep(artifact)
        if shared:
            self._lookup.background.start(self._cache.publish(artifact))
