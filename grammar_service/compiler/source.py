"""Where a model replica gets artifacts from: the request itself, its memory, Redis, or the compile pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from grammar_service.artifacts.artifact import AuthenticArtifact
from grammar_service.artifacts.cache.tiered import TieredCache
from grammar_service.artifacts.seal import Seal
from grammar_service.compiler.lookup import HEAD_START_S, Lookup
from grammar_service.errors import PoolUnavailable
from grammar_service.limits import Limits
from grammar_service.mac import Secret
from grammar_service.messages import Compiled, CompileRequest, ReadyGrammar, Refusal
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarSpec


class GrammarSource:
    """Hands out authentic artifacts; `compile` asks the pool, and may raise PoolBusy or PoolUnavailable itself. Redis has `head_start_s`
    before the pool is asked as well."""

    def __init__(
        self,
        cache: TieredCache,
        compile: Callable[[CompileRequest], Awaitable[Compiled | Refusal]],  # noqa: A002
        secret: Secret,
        fingerprint: str,
        limits: Limits,
        head_start_s: float = HEAD_START_S,
    ) -> None:
        self._cache = cache
        self._compile = compile
        self._seal = Seal(secret, fingerprint)
        self._limits = limits
        self._lookup = Lookup(cache, self._seal, head_start_s)
        self._pool_calls = 0
        self._corrupt = 0

    @property
    def fingerprint(self) -> str:
        """Of the tokens that the pool compiles for."""
        return self._seal.fingerprint

    def resolve(self, spec: GrammarSpec) -> ReadyGrammar:
        """The spec with its backend and key. Raises GrammarError."""
        return resolve(spec, self._limits, self._seal.fingerprint).ready()

    async def get(self, grammar: ReadyGrammar) -> AuthenticArtifact:
        """The artifact: the one that came with the request, where it is authentic.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: it cannot be compiled now.
        """
        artifact = None if grammar.artifact is None else self._received(grammar.artifact, grammar.key)
        if artifact is None:
            artifact = (await self._lookup.get(grammar.key, lambda: self._from_pool(grammar))).artifact
        if grammar.pinned:
            self._cache.pin(grammar.key)
        return artifact

    def counters(self) -> dict[str, int]:
        """memory_hits, redis_hits, pool_calls, corrupt, and the cache's other counters; they only grow."""
        counters = self._cache.counters()
        return {**counters, "pool_calls": self._pool_calls, "corrupt": counters["corrupt"] + self._corrupt}

    async def close(self) -> None:
        await self._lookup.close()
        await self._cache.close()

    async def _from_pool(self, grammar: ReadyGrammar) -> AuthenticArtifact:
        self._pool_calls += 1
        answer = await self._compile(CompileRequest(grammar.spec, grammar.key, grammar.backend))
        if isinstance(answer, Refusal):
            raise answer.error()
        artifact = self._received(answer.blob, grammar.key)
        if artifact is None:
            self._corrupt += 1
            raise PoolUnavailable("the compile pool's artifact is not intact: do all nodes have the same secret and model?")
        return artifact

    def _received(self, blob: bytes, key: str) -> AuthenticArtifact | None:
        """What came from another process, in memory from now on; None where it is not authentic."""
        artifact = self._seal.authentic(blob, key)
        if artifact is not None:
            self._cache.keep(artifact)
        return artifact
