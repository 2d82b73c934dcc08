"""Memory in front of Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from grammar_service.cache.memory import MemoryCache
from grammar_service.cache.redis import RedisCache


@dataclass(frozen=True, slots=True)
class Found:
    blob: bytes
    tier: Literal["memory", "redis"]


@dataclass(slots=True)
class TierCounters:
    memory_hits: int = 0
    redis_hits: int = 0
    misses: int = 0
    corrupt: int = 0


class TieredCache:
    """Encoded artifacts by grammar key. What comes from Redis is used only if the caller finds it intact."""

    def __init__(self, memory: MemoryCache, redis: RedisCache | None) -> None:
        self._memory = memory
        self._redis = redis
        self._counters = TierCounters()

    async def get(self, key: str, intact: Callable[[bytes], bool]) -> Found | None:
        """The value from the nearest tier; a corrupt one counts as a miss and is overwritten by the next put."""
        if (blob := self._memory.get(key)) is not None:
            self._counters.memory_hits += 1
            return Found(blob, "memory")
        blob = await self._redis.get(key) if self._redis else None
        if blob is not None and intact(blob):
            self._counters.redis_hits += 1
            self._memory.put(key, blob)
            return Found(blob, "redis")
        self._counters.corrupt += blob is not None
        self._counters.misses += 1
        return None

    def held(self, key: str) -> bytes | None:
        """What memory holds, without waiting; not counted."""
        return self._memory.get(key)

    def keep(self, key: str, blob: bytes) -> None:
        """Store in memory only."""
        self._memory.put(key, blob)

    async def publish(self, key: str, blob: bytes) -> None:
        """Store in Redis only, which may take its whole timeout."""
        if self._redis:
            await self._redis.put(key, blob)

    def pin(self, key: str) -> None:
        """Keep what memory holds of `key` until `unpin`, within the bounds of `MemoryCache`."""
        self._memory.pin(key)

    def unpin(self, key: str) -> None:
        self._memory.unpin(key)

    def counters(self) -> dict[str, int]:
        """Counters that only grow, Redis's own with the prefix `redis_server_`."""
        counters: dict[str, int] = asdict(self._counters)
        if self._redis:
            counters.update({f"redis_server_{name}": value for name, value in asdict(self._redis.counters).items()})
        return counters

    async def close(self) -> None:
        if self._redis:
            await self._redis.close()
