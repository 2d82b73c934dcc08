"""Responses that a later request may go on from, or that are read again: for a while, by tenant, and no more bytes than there is room for.

In Redis they are encrypted (AES-GCM) under a key of the service's secret and bound to their place: whoever has Redis can take them away,
and read or change none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Sequence
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
LEASE_S = 60
"""A response in progress whose ingress says nothing for so long is lost. Redis may be gone for nearly as long."""
_PLAIN, _START, _FINISH = "plain", "start", "finish"
# The index may have been evicted, or its responses may have expired.
PUT = """
local index, total, place, lease, data, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local now, ttl, room, prefix, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local mode, lease_s = ARGV[8], ARGV[9]
if mode == 'finish' and redis.call('DEL', lease) == 0 then return 0 end
local held = 0
if redis.call('EXISTS', index) == 1 then held = tonumber(redis.call('GET', total) or '0') or 0 end
local before = redis.call('STRLEN', place)
if before > 0 and redis.call('ZREM', index, before .. ':' .. id) == 1 then held = held - before end
local at = 0
for i = 1, most do
  local oldest = redis.call('ZRANGE', index, at, at, 'WITHSCORES')
  if not oldest[1] or (tonumber(oldest[2]) > now - ttl and held + #data <= room) then break end
  local size, other = oldest[1]:match('^(%d+):(.*)$')
  if other and redis.call('EXISTS', prefix .. other .. ':running') == 1 then
    at = at + 1
  else
    redis.call('ZREM', index, oldest[1])
    if other then
      redis.call('DEL', prefix .. other)
      held = held - tonumber(size)
    end
  end
end
if mode == 'start' and held + #data > room then return 0 end
redis.call('SET', place, data, 'EX', ttl)
redis.call('ZADD', index, now, #data .. ':' .. id)
redis.call('EXPIRE', index, ttl)
redis.call('SET', total, math.max(0, held) + #data, 'EX', ttl)
if mode == 'start' then redis.call('SET', lease, '', 'EX', lease_s) end
return 1
"""
"""The newest stay, and those in progress; where these take all the room, none is begun. Of each tenant a sorted set has `<bytes>:<id>` by
the time, in seconds, of its response, and a key has the sum."""
DELETE = """
local size, running = redis.call('STRLEN', KEYS[3]), redis.call('DEL', KEYS[4])
if size == 0 then return running end
redis.call('DEL', KEYS[3])
if redis.call('ZREM', KEYS[1], size .. ':' .. ARGV[1]) == 1 then redis.call('DECRBY', KEYS[2], size) end
return 1
"""
RENEW = """
local running = {}
for i, lease in ipairs(KEYS) do running[i] = redis.call('EXPIRE', lease, ARGV[1]) end
return running
"""
ResponseKey = tuple[str, str]
"""A tenant and the id of a response."""


class ResponseStore(Protocol):
    """Stores encoded responses by tenant and id. Ids are never reused. All methods may raise CacheUnavailable."""

    async def put(self, tenant: str, response_id: str, data: bytes) -> None: ...

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        """None: the tenant has no such response, or no longer."""

    async def delete(self, tenant: str, response_id: str) -> bool:
        """Whether it was there."""

    async def start(self, tenant: str, response_id: str, data: bytes) -> bool:
        """Puts a response that is in progress: until `finish` or `delete`, or until nobody renews it for `LEASE_S`. False: those in
        progress take all the room."""

    async def finish(self, tenant: str, response_id: str, data: bytes) -> bool:
        """Puts what becomes of a response in progress; False: it is in progress no more, and nothing is put."""

    async def is_running(self, tenant: str, response_id: str) -> bool:
        """Whether it is in progress."""

    async def renew(self, keys: Sequence[ResponseKey]) -> Sequence[ResponseKey]:
        """Renews the leases of responses in progress, and returns those that have none."""

    async def close(self) -> None: ...


class MemoryResponses:
    """Where there is no Redis: those that this process has answered, of all tenants together."""

    def __init__(self, ttl_s: int, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._clock = clock
        self._held: MemoryCache[_Kept] = MemoryCache(most_bytes)
        self._running: set[ResponseKey] = set()

    async def put(self, tenant: str, response_id: str, data: bytes) -> None:
        self._held.put(f"{tenant}:{response_id}", _Kept(data, self._clock() + self._ttl_s))

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        kept = self._held.get(key := f"{tenant}:{response_id}")
        if kept is not None and kept.until < self._clock():
            self._held.discard(key)
            return None
        return None if kept is None else kept.data

    async def delete(self, tenant: str, response_id: str) -> bool:
        found = await self.get(tenant, response_id) is not None or await self.is_running(tenant, response_id)
        self._held.discard(f"{tenant}:{response_id}")
        self._running.discard((tenant, response_id))
        return found

    async def start(self, tenant: str, response_id: str, data: bytes) -> bool:
        await self.put(tenant, response_id, data)
        if self._held.pinned_bytes + len(data) > self._most_bytes // 2 or not self._held.pin(f"{tenant}:{response_id}"):
            self._held.discard(f"{tenant}:{response_id}")
            return False
        self._running.add((tenant, response_id))
        return True

    async def finish(self, tenant: str, response_id: str, data: bytes) -> bool:
        if not await self.is_running(tenant, response_id):
            return False
        self._running.discard((tenant, response_id))
        self._held.discard(f"{tenant}:{response_id}")  # it need not stay any more
        await self.put(tenant, response_id, data)
        return True

    async def is_running(self, tenant: str, response_id: str) -> bool:
        return (tenant, response_id) in self._running

    async def renew(self, keys: Sequence[ResponseKey]) -> Sequence[ResponseKey]:
        return [key for key in keys if key not in self._running]

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
        self,
        link: RedisLink,
        namespace: str,
        secret: Secret,
        ttl_s: int,
        most_bytes: int,
        clock: Callable[[], float] = time.time,
        lease_s: int = LEASE_S,
    ) -> None:
        self._link = link
        self._root = f"{namespace}:responses:{FORMAT_VERSION}"
        self._ciphers = [AESGCM(mac_of(each, b"responses")) for each in ((secret,) if isinstance(secret, bytes) else secret)]
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._clock = clock
        self._lease_s = lease_s

    async def put(self, tenant: str, response_id: str, data: bytes) -> None:
        await self._put(tenant, response_id, data, _PLAIN)

    async def start(self, tenant: str, response_id: str, data: bytes) -> bool:
        return await self._put(tenant, response_id, data, _START)

    async def finish(self, tenant: str, response_id: str, data: bytes) -> bool:
        return await self._put(tenant, response_id, data, _FINISH)

    async def is_running(self, tenant: str, response_id: str) -> bool:
        *_, lease = self._keys(tenant, response_id)
        return bool(await self._link.ask(lambda redis: redis.exists(lease)))

    async def renew(self, keys: Sequence[ResponseKey]) -> Sequence[ResponseKey]:
        leases = [self._keys(*key)[-1] for key in keys]
        running = await self._link.ask(lambda redis: redis.eval(RENEW, len(leases), *leases, self._lease_s))
        return [key for key, runs in zip(keys, running, strict=True) if not runs]

    async def get(self, tenant: str, response_id: str) -> bytes | None:
        *_, place, _ = self._keys(tenant, response_id)
        data = await self._link.ask(lambda redis: cast(Awaitable[bytes | None], redis.get(place)))
        return None if data is None else self._opened(data, place.encode())

    async def delete(self, tenant: str, response_id: str) -> bool:
        keys = self._keys(tenant, response_id)
        return bool(await self._link.ask(lambda redis: redis.eval(DELETE, len(keys), *keys, response_id)))

    async def close(self) -> None:
        await self._link.close()

    async def _put(self, tenant: str, response_id: str, data: bytes, mode: str) -> bool:
        keys, nonce = self._keys(tenant, response_id), os.urandom(NONCE_BYTES)
        *_, place, _ = keys
        sealed = nonce + self._ciphers[0].encrypt(nonce, data, place.encode())
        prefix = place.removesuffix(response_id)
        given = (sealed, response_id, int(self._clock()), self._ttl_s, self._most_bytes, prefix, MAX_REMOVED, mode, self._lease_s)
        return bool(await self._link.ask(lambda redis: redis.eval(PUT, len(keys), *keys, *given)))

    def _keys(self, tenant: str, response_id: str) -> tuple[str, str, str, str]:
        """Of the index, the sum, the response, and its lease while it is in progress; neither tenants nor ids have colons."""
        place = f"{self._root}:{tenant}:{response_id}"
        return f"{self._root}:{tenant}", f"{self._root}:{tenant}:", place, f"{place}:running"

    def _opened(self, data: bytes, place: bytes) -> bytes | None:
        """None: it is not ours."""
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place)
            except (InvalidTag, ValueError):  # ValueError: it is too short
                continue
        return None
