"""Memory in front of Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from grammar_service.artifacts.artifact import AuthenticArtifact
from grammar_service.artifacts.cache.memory import MemoryCache
from grammar_service.artifacts.cache.redis import RedisCache
from grammar_service.messages import Source


@dataclass(frozen=True, slots=True)
class Found:
    """An artifact, and where it came from."""

    artifact: AuthenticArtifact
    source: Source


@dataclass(slots=True)
class TierCounters:
    memory_hits: int = 0
    redis_hits: int = 0
    misses: int = 0
    corrupt: int = 0


class TieredCache:
    """Artifacts by grammar key. Memory holds only authentic ones; what comes from Redis is used only if the caller finds it to be one."""

    def __init__(self, memory: MemoryCache[AuthenticArtifact], redis: RedisCache | None) -> None:
        self._memory = memory
        self._redis = redis
        self._counters = TierCounters()

    async def get(self, key: str, authentic: Callable[[bytes], AuthenticArtifact | None]) -> Found | None:
        """The artifact from the nearest tier; one that is not authentic counts as a miss and is overwritten by the next `publish`."""
        if (hit := self.in_memory(key)) is not None:
            return hit
        blob = await self._redis.get(key) if self._redis else None
        artifact = authentic(blob) if blob is not None else None
        if artifact is not None:
            self._counters.redis_hits += 1
            self.keep(artifact)
            return Found(artifact, "redis")
        self._counters.corrupt += blob is not None
        self._counters.misses += 1
        return None

    def in_memory(self, key: str) -> Found | None:
        """What memory holds, without waiting; a hit is counted."""
        artifact = self.held(key)
        if artifact is None:
            return None
        self._counters.memory_hits += 1
        return Found(artifact, "memory")

    def held(self, key: str) -> AuthenticArtifact | None:
        """What memory holds, without waiting; not counted."""
        return self._memory.get(key)

    def keep(self, artifact: AuthenticArtifact) -> None:
        """Store in memory only."""
        self._memory.put(artifact.header.key, artifact)

    async def publish(self, artifact: AuthenticArtifact) -> None:
        """Store in Redis only, which may take its whole timeout."""
        if self._redis:
            await self._redis.put(artifact.header.key, artifact.blob)

    def pin(self, key: str) -> None:
        """Keep what memory holds of `key`, within the bounds of `MemoryCache`. A pin that nobody uses gives way to others."""
        self._memory.pin(key)

    def counters(self) -> dict[str, int]:
        """Counters that only grow, Redis's own with the prefix `redis_server_`."""
        counters: dict[str, int] = asdict(self._counters)
        if self._redis:
            counters.update({f"redis_server_{name}": value for name, value in asdict(self._redis.counters).items()})
        return counters

    async def close(self) -> None:
        if self._redis:
            await self._redis.close()
