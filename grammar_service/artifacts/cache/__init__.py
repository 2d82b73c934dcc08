"""Artifacts in memory and in Redis."""

from grammar_service.artifacts.cache.memory import MemoryCache
from grammar_service.artifacts.cache.redis import RedisCache
from grammar_service.artifacts.cache.tiered import Found, TieredCache

__all__ = ["Found", "MemoryCache", "RedisCache", "TieredCache"]
