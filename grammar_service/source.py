"""Where a model replica gets artifacts from: the request itself, its memory, Redis, or the compile pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from grammar_service.artifact import Artifact
from grammar_service.behind import Behind
from grammar_service.cache.tiered import TieredCache
from grammar_service.errors import PoolUnavailable
from grammar_service.head_start import HEAD_START_S, found_or_made
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.resolve import ResolvedGrammar, resolve
from grammar_service.seal import Seal
from grammar_service.single_flight import SingleFlight
from grammar_service.spec import GrammarSpec


class GrammarSource:
    """Hands out intact encoded artifacts; `compile` asks the pool, and may raise PoolBusy or PoolUnavailable itself. Redis has
    `head_start_s` before the pool is asked as well."""

    def __init__(
        self,
        cache: TieredCache,
        compile: Callable[[CompileRequest], Awaitable[Compiled | Refusal]],  # noqa: A002
        secret: bytes,
        fingerprint: str,
        limits: Limits,
        head_start_s: float = HEAD_START_S,
    ) -> None:
        self._cache = cache
        self._compile = compile
        self._seal = Seal(secret, fingerprint)
        self._limits = limits
        self._head_start_s = head_start_s
        self._flights: SingleFlight[bytes] = SingleFlight()
        self._behind = Behind()
        self._pool_calls = 0
        self._corrupt = 0

    def resolve(self, spec: GrammarSpec) -> ResolvedGrammar:
        """The spec with its backend and key. Raises GrammarError."""
        return resolve(spec, self._limits, self._seal.fingerprint)

    async def get(self, grammar: ResolvedGrammar) -> bytes:
        """The encoded artifact; its MAC, key and vocabulary have been checked.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: it cannot be compiled now.
        """
        blob = await self._flights.run(grammar.key, lambda: self._get(grammar))
        if grammar.pinned:
            self._cache.pin(grammar.key)
        return blob

    def decode(self, blob: bytes, key: str) -> Artifact:
        """The artifact in a blob that `get` returned. Raises ArtifactError."""
        return self._seal.opened(blob, key)

    def counters(self) -> dict[str, int]:
        """memory_hits, redis_hits, pool_calls, corrupt, and the cache's other counters; they only grow."""
        counters = self._cache.counters()
        return {**counters, "pool_calls": self._pool_calls, "corrupt": counters["corrupt"] + self._corrupt}

    async def close(self) -> None:
        await self._flights.close()
        await self._behind.close()
        await self._cache.close()

    async def _get(self, grammar: ResolvedGrammar) -> bytes:
        if grammar.artifact is not None and self._seal.is_intact(grammar.artifact, grammar.key):
            self._cache.keep(grammar.key, grammar.artifact)
            return grammar.artifact
        if self._cache.held(grammar.key) is not None and (held := await self._find(grammar.key)) is not None:
            return held
        return await found_or_made(
            lambda: self._behind.go_on(self._find(grammar.key)),
            lambda: self._behind.go_on(self._from_pool(grammar)),
            self._head_start_s,
        )

    async def _find(self, key: str) -> bytes | None:
        found = await self._cache.get(key, lambda blob: self._seal.is_intact(blob, key))
        if found is None:
            return None
        if (refusal := self._seal.refusal_in(found.blob, key)) is not None:
            raise refusal
        return found.blob

    async def _from_pool(self, grammar: ResolvedGrammar) -> bytes:
        self._pool_calls += 1
        answer = await self._compile(CompileRequest(grammar.spec, grammar.key, grammar.backend))
        if isinstance(answer, Refusal):
            raise answer.error()
        if not self._seal.is_intact(answer.blob, grammar.key):
            self._corrupt += 1
            raise PoolUnavailable("the compile pool's artifact is not intact: do all nodes have the same secret and model?")
        self._cache.keep(grammar.key, answer.blob)
        return answer.blob
