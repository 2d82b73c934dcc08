"""Responses that a later request may go on from, or that are read again: for a while, by tenant, and no more bytes than there is room for.

In Redis they are encrypted (AES-GCM) under a key of the service's secret and bound to their place: whoever has Redis can take them away,
and read or change none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grammar_service.artifacts.cache.link import RedisLink
from grammar_service.artifacts.cache.memory import MemoryCache
from grammar_service.mac import Secret, mac_of

FORMAT_VERSION = 1
NONCE_BYTES = 12
# A script is carried out whole before Redis listens to anybody else. The index may have been evicted, or its entries may have expired.
PUT = """
local index, place, data, id, now = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3])
local ttl, room, prefix = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
redis.call('ZREMRANGEBYSCORE', index, '-inf', now - ttl)
local bytes, held = #data, redis.call('ZRANGE', index, 0, -1)
for i = #held, 1, -1 do
  local size, other = held[i]:match('^(%d+):(.*)$')
  if other == id then
    redis.call('ZREM', index, held[i])
  else
    bytes = bytes + tonumber(size)
    if bytes > room or #held - i >= 10000 then
      redis.call('DEL', prefix .. other)
      redis.call('ZREM', index, held[i])
    end
  end
end
redis.call('SET', place, data, 'EX', ttl)
redis.call('ZADD', index, now, #data .. ':' .. id)
redis.call('EXPIRE', index, ttl)
"""
"""The newest stay. Of each tenant a sorted set has `<bytes>:<id>` by the time, in seconds, of its response."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`items` are those of the whole conversation that the response answers, its own output not among them."""

    response: dict[str, Any]
    items: list[Any] = field(default_factory=list)


_DECODER = msgspec.msgpack.Decoder(StoredResponse)


class ResponseStore(Protocol):
    """Each may raise CacheUnavailable."""

    async def put(self, tenant: str, stored: StoredResponse) -> bool:
        """Whether there is room for it at all."""

    async def get(self, tenant: str, response_id: str) -> StoredResponse | None:
        """None: the tenant has no such response, or no longer."""

    async def delete(self, tenant: str, response_id: str) -> bool:
        """Whether it was there."""

    async def close(self) -> None: ...


class MemoryResponses:
    """Where there is no Redis: those that this process has answered."""

    def __init__(self, ttl_s: int, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._clock = clock
        self._held: dict[str, MemoryCache[bytes]] = {}

    async def put(self, tenant: str, stored: StoredResponse) -> bool:
        data = msgspec.msgpack.encode((self._clock() + self._ttl_s, stored))
        self._held.setdefault(tenant, MemoryCache(self._most_bytes)).put(str(stored.response["id"]), data)
        return len(data) <= self._most_bytes

    async def get(self, tenant: str, response_id: str) -> StoredResponse | None:
        held = self._held.get(tenant)
        if held is None or (data := held.get(response_id)) is None:
            return None
        until, stored = msgspec.msgpack.decode(data, type=tuple[float, StoredResponse])
        if until < self._clock():
            held.discard(response_id)
            return None
        return stored

    async def delete(self, tenant: str, response_id: str) -> bool:
        found = await self.get(tenant, response_id) is not None
        if found:
            self._held[tenant].discard(response_id)
        return found

    async def close(self) -> None:
        """Nothing is open."""


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

    async def put(self, tenant: str, stored: StoredResponse) -> bool:
        place, response_id = self._place(tenant, name := str(stored.response["id"])), name
        nonce = os.urandom(NONCE_BYTES)
        data = nonce + self._ciphers[0].encrypt(nonce, msgspec.msgpack.encode(stored), place.encode())
        if len(data) > self._most_bytes:
            return False
        keys = (f"{self._root}:{tenant}", place)
        given = (data, response_id, int(self._clock()), self._ttl_s, self._most_bytes, f"{self._root}:{tenant}:")
        await self._link.ask(lambda redis: redis.eval(PUT, len(keys), *keys, *given))
        return True

    async def get(self, tenant: str, response_id: str) -> StoredResponse | None:
        place = self._place(tenant, response_id)
        data = await self._link.ask(lambda redis: cast(Awaitable[bytes | None], redis.get(place)))
        return None if data is None else self._opened(data, place.encode())

    async def delete(self, tenant: str, response_id: str) -> bool:
        place = self._place(tenant, response_id)
        return bool(await self._link.ask(lambda redis: redis.delete(place)))

    async def close(self) -> None:
        await self._link.close()

    def _place(self, tenant: str, response_id: str) -> str:
        return f"{self._root}:{tenant}:{response_id}"

    def _opened(self, data: bytes, place: bytes) -> StoredResponse | None:
        """None: it is not ours."""
        for cipher in self._ciphers:
            try:
                return _DECODER.decode(cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place))
            except (InvalidTag, ValueError):  # ValueError: too short, or of another layout
                continue
        return None
