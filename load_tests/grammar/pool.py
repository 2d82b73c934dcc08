"""Part `pool`: a compile replica as the service runs it. How long a cold grammar's first mask takes, and a hit in memory.

Each case is asked for once while nobody has seen it; then its artifact is awaited, which stays in Redis for the part `ready`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

from deployments.reporting.quantiles import quantile
from deployments.reporting.stopwatch import ms_since, timed
from grammar_service.artifacts.cache import MemoryCache, RedisCache, TieredCache
from grammar_service.artifacts.reader import Reader
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.heap import settle_heap
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest, Refusal
from grammar_service.resolve import resolve
from grammar_service.sandbox import SandboxSettings
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.cases import Case
from load_tests.grammar.messages import Assignment, Began, Measured, RedisAddress, Values
from load_tests.grammar.peers import BareLlguidance

MEMORY_BYTES = 1 << 30
HITS = 200
REDIS_TIMEOUT_MS = 2000
"""Long, so that a busy machine does not turn a measurement into a miss."""


def open_redis(address: RedisAddress) -> RedisCache:
    return RedisCache(address.url, address.password, address.namespace, REDIS_TIMEOUT_MS, 24 * 3600, MEMORY_BYTES)


def measure(assignment: Assignment, tokenizer: GrammarTokenizer) -> Iterator[Began | Measured]:
    """One row a case."""
    replica = Replica(assignment, tokenizer)
    with asyncio.Runner() as runner:
        try:
            runner.run(replica.start())
            for case in assignment.cases:
                yield Began(case.name)
                yield Measured(case.name, runner.run(replica.figures(case)))
        finally:
            runner.run(replica.close())


class Replica:
    """A compile replica, and a reader beside it."""

    def __init__(self, assignment: Assignment, tokenizer: GrammarTokenizer) -> None:
        redis = open_redis(assignment.redis) if assignment.redis else None
        cache = TieredCache(MemoryCache(MEMORY_BYTES), redis)
        self._limits = Limits()
        self._reader = Reader(tokenizer, assignment.secret)
        self._llguidance = BareLlguidance(tokenizer)
        self._compiler = GrammarCompiler(assignment.tokenizer_path, assignment.deadline_s, SandboxSettings(), cache, assignment.secret)

    async def start(self) -> None:
        await self._compiler.start()
        self._reader.warm_up()
        # As in each of the processes that a request goes through: ingress, compile replica, engine core.
        settle_heap()

    async def close(self) -> None:
        await self._compiler.close()

    async def figures(self, case: Case) -> Values:
        """`backend` answers in the long run, `first_backend` the first time, `quick` whether that is llguidance. `cold_ms` is the sum of
        resolving the spec, the replica's answer, and reading it; `bare_ms` is the bare llguidance's, None where it refuses."""
        started = time.perf_counter()
        try:
            grammar = resolve(case.spec, self._limits, self._compiler.fingerprint)
        except GrammarError as error:
            return {"refused": str(error)}
        resolve_ms = ms_since(started)
        request = grammar.request()
        answer = await self._compiler.compile(request)
        answer_ms = ms_since(started) - resolve_ms
        if isinstance(answer, Refusal):
            return {"backend": grammar.backend, "refused": answer.message}
        self._reader.first_mask(answer.blob, answer.key)
        cold_ms = ms_since(started)
        first: Values = {"backend": grammar.backend, "first_backend": answer.backend, "quick": answer.backend == "llguidance"}
        steps: Values = {"cold_ms": cold_ms, "resolve_ms": resolve_ms, "answer_ms": answer_ms, "bare_ms": self._bare_ms(case)}
        return {**first, **steps, **await self._settled(request)}

    def _bare_ms(self, case: Case) -> float | None:
        try:
            return timed(lambda: self._llguidance.first_mask(case.spec))[1]
        except UnsupportedGrammar:
            return None

    async def _settled(self, request: CompileRequest) -> Values:
        final = replace(request, stopgap=None)
        started = time.perf_counter()
        answer = await self._compiler.compile(final)
        if isinstance(answer, Refusal):
            return {"slow_refusal": answer.message}
        settled_ms = ms_since(started)
        hits = [await self._hit_ms(final) for _ in range(HITS)]
        return {"key": request.key, "settled_ms": settled_ms, "artifact_bytes": len(answer.blob), "hit_ms": quantile(hits, 0.5)}

    async def _hit_ms(self, request: CompileRequest) -> float:
        started = time.perf_counter()
        await self._compiler.compile(request)
        return ms_since(started)
