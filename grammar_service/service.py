"""One compile replica: memory, Redis, or the sandbox, each key once at a time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from grammar_service.artifact import Artifact, ArtifactHeader, authenticate, encode
from grammar_service.backends import backend_named
from grammar_service.cache.tiered import TieredCache
from grammar_service.errors import ArtifactError, CompileFailed, CompileTimeout, GrammarError, MaskcastError, PoolBusy, PoolUnavailable
from grammar_service.key import grammar_key
from grammar_service.limits import Limits, check_limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.sandbox import Sandbox
from grammar_service.single_flight import SingleFlight

DEFAULT_QUEUE = 32


@dataclass(slots=True)
class CompilerCounters:
    requests: int = 0
    compiled: int = 0
    refused: int = 0
    timed_out: int = 0
    failed: int = 0
    busy: int = 0
    unavailable: int = 0


class GrammarCompiler:
    """Answers every request with an artifact or a refusal. `secret` authenticates artifacts; `deadline_s` bounds one compile.

    At most `max_queued` different grammars wait for the one sandbox; beyond that the answer is PoolBusy's refusal.
    """

    def __init__(
        self,
        tokenizer_path: str | Path,
        vocab_size: int | None,
        limits: Limits,
        deadline_s: float,
        memory_limit_bytes: int,
        cache: TieredCache,
        secret: bytes,
        max_queued: int = DEFAULT_QUEUE,
        threads: int = 1,
    ) -> None:
        self._limits = limits
        self._deadline_s = deadline_s
        self._cache = cache
        self._secret = secret
        self._max_queued = max_queued
        self._sandbox = Sandbox(tokenizer_path, vocab_size, memory_limit_bytes, threads)
        self._flights: SingleFlight[Compiled] = SingleFlight()
        self._counters = CompilerCounters()

    @property
    def fingerprint(self) -> str:
        """The tokenizer's fingerprint; empty before `start`."""
        return self._sandbox.fingerprint

    async def start(self) -> None:
        """Wait for a warm compile child; may be called again. Raises PoolUnavailable."""
        await self._sandbox.start()

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """The artifact of the request's key, or why there is none. Raises nothing but cancellation."""
        self._counters.requests += 1
        try:
            return await self._answer(request)
        except MaskcastError as error:
            self._count(error)
            return Refusal.of(error)

    async def counters(self) -> dict[str, int]:
        """Counters that only grow: this replica's, its cache's, and how many children were replaced."""
        own = {name: getattr(self._counters, name) for name in CompilerCounters.__slots__}
        return {**own, "children_replaced": self._sandbox.replaced, **self._cache.counters()}

    async def check_health(self) -> None:
        """Raises PoolUnavailable where no compile child can be had."""
        await self._sandbox.start()

    async def close(self) -> None:
        await self._sandbox.close()
        await self._flights.close()
        await self._cache.close()

    async def _answer(self, request: CompileRequest) -> Compiled:
        started = time.perf_counter()
        if not self.fingerprint:
            await self.start()
        self._check(request)
        found = await self._cache.get(request.key, lambda blob: self._is_intact(blob, request.key))
        if found is not None:
            return Compiled(request.key, found.blob, found.tier, _ms_since(started))
        if request.key not in self._flights and len(self._flights) >= self._max_queued:
            raise PoolBusy(f"{len(self._flights)} grammars wait to be compiled already")
        return await self._flights.run(request.key, lambda: self._make(request))

    def _check(self, request: CompileRequest) -> None:
        """The key names what every replica and Redis will take the artifact for, so it is not believed but computed."""
        check_limits(request.spec, self._limits)
        backend = backend_named(request.backend)
        if grammar_key(request.spec, backend.name, backend.version, self.fingerprint) != request.key:
            raise PoolUnavailable("the request's key is not its grammar's here: do all nodes run the same versions and model?")

    async def _make(self, request: CompileRequest) -> Compiled:
        started = time.perf_counter()
        deadline_s = self._deadline_s if request.deadline_s is None else min(request.deadline_s, self._deadline_s)
        payload = await self._sandbox.compile(request.spec, request.backend, deadline_s)
        header = ArtifactHeader(
            key=request.key,
            backend=request.backend,
            backend_version=backend_named(request.backend).version,
            fingerprint=self.fingerprint,
            compile_ms=_ms_since(started),
            payload_bytes=len(payload),
            created=time.time(),
        )
        blob = await asyncio.to_thread(encode, Artifact(header, payload), self._secret)
        await self._cache.put(request.key, blob)
        self._counters.compiled += 1
        return Compiled(request.key, blob, "compiled", _ms_since(started))

    def _is_intact(self, blob: bytes, key: str) -> bool:
        try:
            authenticate(blob, self._secret, key=key, fingerprint=self.fingerprint)
        except ArtifactError:
            return False
        return True

    def _count(self, error: MaskcastError) -> None:
        match error:
            case CompileTimeout():
                self._counters.timed_out += 1
            case CompileFailed():
                self._counters.failed += 1
            case GrammarError():
                self._counters.refused += 1
            case PoolBusy():
                self._counters.busy += 1
            case _:
                self._counters.unavailable += 1


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
