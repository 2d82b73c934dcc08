from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.artifacts.artifact import ArtifactHeader, AuthenticArtifact
from grammar_service.artifacts.cache import MemoryCache, TieredCache
from grammar_service.artifacts.cache.breaker import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_least_recently_used_goes_first() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"12345")
    cache.put("b", b"12345")
    assert cache.get("a")
    cache.put("c", b"12345")
    assert cache.get("b") is None
    assert cache.get("a") == b"12345"


def test_a_value_over_the_bound_is_not_kept_and_evicts_nothing() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"1")
    cache.put("b", bytes(11))
    assert cache.get("b") is None
    assert cache.get("a") == b"1"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12)), max_size=60))
def test_size_is_the_sum_of_what_is_held_and_never_over_the_bound(puts: list[tuple[str, int]]) -> None:
    cache: MemoryCache[bytes] = MemoryCache(20)
    for key, size in puts:
        cache.put(key, bytes(size))
        assert cache.size_bytes == sum(len(cache.get(name) or b"") for name in "abcdef") <= 20


def test_breaker_opens_after_failures_in_a_row_and_lets_one_probe_out() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock, failures=2, cooldown_s=5)
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.admits()
    breaker.failed()
    assert not breaker.admits()
    clock.now = 5
    assert breaker.admits()
    assert not breaker.admits()
    breaker.failed()
    clock.now = 9
    assert not breaker.admits()
    clock.now = 10
    assert breaker.admits()
    breaker.succeeded()
    assert breaker.admits()
    assert breaker.admits()


def artifact_of(blob: bytes) -> AuthenticArtifact:
    return AuthenticArtifact(blob, ArtifactHeader("k", "xgrammar", "1", "f", 1.0, 0))


def unasked(blob: bytes) -> AuthenticArtifact | None:
    raise AssertionError("what memory holds is not authenticated again")


@pytest.mark.asyncio
async def test_without_redis_memory_serves_alone() -> None:
    cache = TieredCache(MemoryCache(100), None)
    assert await cache.get("k", unasked) is None
    kept = artifact_of(b"v")
    cache.keep(kept)
    found = await cache.get("k", unasked)
    assert found is not None
    assert found.artifact is kept
    assert found.source == "memory"
    assert cache.counters() == {"memory_hits": 1, "redis_hits": 0, "misses": 1, "corrupt": 0}
    await cache.close()


def test_memory_is_bounded_by_the_bytes_of_blobs() -> None:
    cache = TieredCache(MemoryCache(10), None)
    cache.keep(artifact_of(bytes(10)))
    assert cache.held("k") is not None
    cache.keep(artifact_of(bytes(11)))
    assert cache.held("k") is None
