from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from grammar_service.artifacts.artifact import Artifact, ArtifactHeader, encode
from grammar_service.artifacts.cache import MemoryCache, TieredCache
from grammar_service.artifacts.seal import Seal
from grammar_service.compiler.source import GrammarSource
from grammar_service.errors import InvalidGrammar, PoolUnavailable
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarKind, GrammarSpec

pytestmark = pytest.mark.asyncio
SECRET = b"s"
SPEC = GrammarSpec(GrammarKind.REGEX, "a+")


class Pool:
    """Answers with artifacts under a secret, or with a refusal."""

    def __init__(self, secret: bytes = SECRET, refusal: Refusal | None = None) -> None:
        self.calls = 0
        self._secret = secret
        self._refusal = refusal

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        self.calls += 1
        if self._refusal:
            return self._refusal
        header = ArtifactHeader(request.key, request.backend, "1", "f", 1.0, 7)
        return Compiled(request.key, encode(Artifact(header, b"payload"), self._secret), "compiled", 1.0, request.backend)


def source_of(pool: Pool) -> GrammarSource:
    return GrammarSource(TieredCache(MemoryCache(10_000), None), pool.compile, SECRET, "f", Limits())


async def test_many_requests_of_one_grammar_call_the_pool_once() -> None:
    pool = Pool()
    source = source_of(pool)
    grammar = source.resolve(SPEC)
    artifacts = await asyncio.gather(*(source.get(grammar) for _ in range(20)))
    assert len(set(artifacts)) == pool.calls == 1
    again = await source.get(grammar)
    assert again is artifacts[0]
    assert again.payload() == b"payload"
    assert source.counters() == {"memory_hits": 1, "redis_hits": 0, "misses": 1, "corrupt": 0, "pool_calls": 1}
    await source.close()


async def test_a_refusal_is_raised_and_not_kept() -> None:
    pool = Pool(refusal=Refusal("invalid_grammar", "no", "/a"))
    source = source_of(pool)
    for _ in range(2):
        with pytest.raises(InvalidGrammar, match="no"):
            await source.get(source.resolve(SPEC))
    assert pool.calls == 2


async def test_an_artifact_under_another_secret_is_never_used() -> None:
    source = source_of(Pool(secret=b"other"))
    with pytest.raises(PoolUnavailable, match="intact"):
        await source.get(source.resolve(SPEC))
    assert source.counters()["corrupt"] == 1


async def test_a_spec_at_fault_is_refused_without_the_pool() -> None:
    pool = Pool()
    with pytest.raises(InvalidGrammar):
        source_of(pool).resolve(GrammarSpec(GrammarKind.REGEX, "a**"))
    assert pool.calls == 0


async def test_an_artifact_that_came_with_the_request_is_used_if_it_is_intact() -> None:
    pool = Pool()
    source = source_of(pool)
    grammar = source.resolve(SPEC)
    sealed = encode(Artifact(ArtifactHeader(grammar.key, grammar.backend, "1", "f", 1.0, 4), b"mine"), SECRET)
    forged = encode(Artifact(ArtifactHeader(grammar.key, grammar.backend, "1", "f", 1.0, 4), b"evil"), b"other")
    assert (await source.get(replace(grammar, artifact=forged))).payload() == b"payload"
    assert pool.calls == 1
    assert (await source.get(replace(grammar, artifact=sealed))).payload() == b"mine"
    assert pool.calls == 1


async def test_a_refusal_that_another_replica_has_left_is_raised() -> None:
    cache = TieredCache(MemoryCache(10_000), None)
    source = GrammarSource(cache, Pool().compile, SECRET, "f", Limits())
    grammar = source.resolve(SPEC)
    cache.keep(Seal(SECRET, "f").refusal(resolve(SPEC, Limits(), "f").request(), InvalidGrammar("never", "/a")))
    with pytest.raises(InvalidGrammar, match="never"):
        await source.get(grammar)
