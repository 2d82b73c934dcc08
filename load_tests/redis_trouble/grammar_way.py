"""The way of a request's grammar through the processes of the service, in one process: ingress, compile replica, model replica."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from deployments.builders import EMBEDDED_WEIGHTS, PATIENCE_MS
from deployments.local.redis_server import RedisServer
from grammar_service.artifacts.cache import MemoryCache, RedisCache, TieredCache
from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.compiler.source import GrammarSource
from grammar_service.errors import MaskcastError
from grammar_service.limits import Limits
from grammar_service.messages import ReadyGrammar, Refusal
from grammar_service.registry import GrammarEntry, GrammarNames, RegistryStore, Room
from grammar_service.registry.store import RegistryCounters
from grammar_service.resolve import Resolution, resolve
from grammar_service.sandbox import SandboxSettings
from grammar_service.spec import GrammarSpec

SECRET = b"load test"
NAMESPACE = "trouble"
NAME = "named"
MEMORY_BYTES = 64 << 20
DEADLINE_S = 20.0
APART_S = 10.0
"""Between two readings of a breaker's clock: longer than it stays open, so that every request is its probe."""


class GrammarWay:
    """Every request asks Redis wherever any request may: the breakers' clock makes each one the probe after a cool-down, the model replica
    is new, and artifacts do not travel with requests."""

    def __init__(self, server: RedisServer, timeout_ms: int) -> None:
        self._server = server
        self._timeout_ms = timeout_ms
        self._clock = _apart()
        counters = RegistryCounters()
        link = RedisLink(server.url, self._password, timeout_ms, counters, self._clock)
        patient = RedisLink(server.url, self._password, PATIENCE_MS, counters, retries=1)
        self._store = RegistryStore(link, counters, NAMESPACE, SECRET, 1 << 20, patient)
        self._names = GrammarNames({}, self._store)
        self._compiler = GrammarCompiler(EMBEDDED_WEIGHTS, DEADLINE_S, SandboxSettings(), self._cache(), SECRET)

    async def start(self) -> None:
        await self._compiler.start()

    async def close(self) -> None:
        await self._compiler.close()
        await self._store.close()

    async def name(self, spec: GrammarSpec) -> None:
        """Register `spec` under NAME."""
        await self._store.replace(_entry(spec), Room())

    def remember(self, spec: GrammarSpec) -> None:
        """This process has seen `spec` under NAME before."""
        self._names.remember(_entry(spec))

    async def make_known(self, spec: GrammarSpec) -> None:
        """The compile replica has its artifact in memory."""
        await self._compiled(resolve(spec, Limits(), self._compiler.fingerprint))

    async def ready_ms(self, spec: GrammarSpec, named: bool) -> float:
        """Milliseconds from a request's name or spec to its artifact, in the hands of a model replica."""
        source = GrammarSource(self._cache(), self._compiler.compile, SECRET, self._compiler.fingerprint, Limits())
        started = time.perf_counter()
        if named:
            await self._names.find(NAME)
        grammar = resolve(spec, Limits(), self._compiler.fingerprint)
        key, backend = await self._compiled(grammar)
        await source.get(ReadyGrammar(spec, key, backend, grammar.key))
        elapsed_ms = (time.perf_counter() - started) * 1000
        await source.close()
        return elapsed_ms

    async def _compiled(self, grammar: Resolution) -> tuple[str, str]:
        answer = await self._compiler.compile(grammar.request())
        if isinstance(answer, Refusal):
            raise MaskcastError(f"a grammar of the load test was refused: {answer.message}")
        return answer.key, answer.backend

    def _cache(self) -> TieredCache:
        redis = RedisCache(self._server.url, self._password, NAMESPACE, self._timeout_ms, 3600, 8 << 20, self._clock)
        return TieredCache(MemoryCache(MEMORY_BYTES), redis)

    @property
    def _password(self) -> str:
        return self._server.password.get_secret_value()


def _entry(spec: GrammarSpec) -> GrammarEntry:
    return GrammarEntry(NAME, spec, int(time.time()))


def _apart() -> Callable[[], float]:
    readings = count()
    return lambda: next(readings) * APART_S
