"""Responses that a later request may go on from, or that are read again: for a while, by tenant, and no more bytes than there is room for.

In Redis they are encrypted (AES-GCM) under a key of the service's secret and bound to their place: whoever has Redis can take them away,
and read or change none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.artifacts.cache.memory import MemoryCache
from grammar_service.mac import Secret, mac_of

FORMAT_VERSION = 1
NONCE_BYTES = 12
MAX_REMOVED = 1024
"""Old responses that one put removes at most, since Redis serves nobody else during a script. The next puts remove the rest."""
# The index may have been evicted, or its responses may have expired.
PUT = """
local index, total, place, data, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local now, ttl, room, prefix, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local held = 0
if redis.call('EXISTS', index) == 1 then held = tonumber(redis.call('GET', total) or '0') or 0 end
for i = 1, most do
  local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if not oldest[1] or (tonumber(oldest[2]) > now - ttl and held + #data <= room) then break end
  local size, other = oldest[1]:match('^(%d+):(.*)$')
  redis.call('ZREM', index, oldest[1])
  if size then
    redis.call('DEL', prefix .. other)
    held = held - tonumber(size)
  end
end
redis.call('SET', place, data, 'EX', ttl)
redis.call('ZADD', index, now, #data .. ':' .. id)
redis.call('EXPIRE', index, ttl)
redis.call('SET', total, math.max(0, held) + #data, 'EX', ttl)
"""
"""The newest stay. Of each tenant a sorted set has `<bytes>:<id>` by the time, in seconds, of its response, and a key has the sum."""
DELETE = """
local size = redis.call('STRLEN', KEYS[3])
if size == 0 then return 0 end
redis.call('DEL', KEYS[3])
if redis.call('ZREM', KEYS[1], size .. ':' .. ARGV[1]) == 1 then redis.call('DECRBY', KEYS[2], size) end
return 1
"""


class ResponseStore(Protocol):
    """Stores encoded responses by tenant and id. Ids are never reused. All methods may raise CacheUnavailable."""

    async def put(self, tenant: str, response_id: str, data: bytes) -> None: ...

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        """None: the tenant has no such response, or no longer."""

    async def delete(self, tenant: str, response_id: str) -> bool:
        """Whether it was there."""

    async def close(self) -> None: ...


class MemoryResponses:
    """Where there is no Redis: those that this process has answered, of all tenants together."""

    def __init__(self, ttl_s: int, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._held: MemoryCache[_Kept] = MemoryCache(most_bytes)

    async def put(self, tenant: str, response_id: str, data: bytes) -> None:
        self._held.put(f"{tenant}:{response_id}", _Kept(data, self._clock() + self._ttl_s))

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        kept = self._held.get(key := f"{tenant}:{response_id}")
        if kept is not None and kept.until < self._clock():
            self._held.discard(key)
            return None
        return None if kept is None else kept.data

    async def delete(self, tenant: str, response_id: str) -> bool:
        found = await self.get(tenant, response_id) is not None
        self._held.discard(f"{tenant}:{response_id}")
        return found

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class _Kept:
    data: bytes
    until: float

    def __len__(self) -> int:
        return len(self.data)


class RedisResponses:
    """At `<namespace>:responses:1:<tenant>:<id>`; every call ends as the link's do."""

    def __init__(
        self, link: RedisLink, namespace: str, secret: Secret, ttl_s: int, most_bytes: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._link = link
        self._root = f"{namespace}:responses:{FORMAT_VERSION}"
        self._ciphers = [AESGCM(mac_of(each, b"responses")) for each in ((secret,) if isinstance(secret, bytes) else secret)]
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._clock = clock

    async def put(self, tenant: str, response_id: str, data: bytes) -> None:
        keys, nonce = self._keys(tenant, response_id), os.urandom(NONCE_BYTES)
        sealed = nonce + self._ciphers[0].encrypt(nonce, data, keys[-1].encode())
        prefix = keys[-1].removesuffix(response_id)
        given = (sealed, response_id, int(self._clock()), self._ttl_s, self._most_bytes, prefix, MAX_REMOVED)
        await self._link.ask(lambda redis: redis.eval(PUT, len(keys), *keys, *given))

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        *_, place = self._keys(tenant, response_id)
        data = await self._link.ask(lambda redis: cast(Awaitable[bytes | None], redis.get(place)))
        return None if data is None else self._opened(data, place.encode())

    async def delete(self, tenant: str, response_id: str) -> bool:
        keys = self._keys(tenant, response_id)
        return bool(await self._link.ask(lambda redis: redis.eval(DELETE, len(keys), *keys, response_id)))

    async def close(self) -> None:
        await self._link.close()

    def _keys(self, tenant: str, response_id: str) -> tuple[str, str, str]:
        """Of the index, the sum, and the response; neither tenants nor ids have colons."""
        return f"{self._root}:{tenant}", f"{self._root}:{tenant}:", f"{self._root}:{tenant}:{response_id}"

    def _opened(self, data: bytes, place: bytes) -> bytes | None:
        """None: it is not ours."""
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place)
            except (InvalidTag, ValueError):  # ValueError: it is too short
                continue
        return None
