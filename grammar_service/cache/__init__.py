from grammar_service.cache.memory import MemoryCache
from grammar_service.cache.redis import RedisCache
from grammar_service.cache.tiered import Found, TieredCache

__all__ = ["Found", "MemoryCache", "RedisCache", "TieredCache"]
