"""The registry in Redis: one sealed entry a name, without expiry, and a set of all names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.errors import EntryError
from grammar_service.mac import Secret
from grammar_service.registry.entry import GrammarEntry, seal, unseal

FORMAT_VERSION = 1
"""Part of every place: entries of another layout are never read."""
WRONG_TYPE = "WRONGTYPE"
BATCH = 8
"""Entries that one call reads: all of the largest size, they still come within a call's time."""


class Stored(Enum):
    """What became of an entry that was to be stored."""

    NEW = auto()
    TAKEN = auto()
    FULL = auto()


@dataclass(slots=True)
class RegistryCounters(LinkCounters):
    """`damaged` counts entries that were not ours, `from_memory` lookups that were answered without Redis."""

    damaged: int = 0
    from_memory: int = 0


class RegistryStore:
    """Every call ends as the link's do: in time, or with CacheUnavailable.

    Entries are at `<namespace>:registry:1:<id>`, the names in the set `<namespace>:registry:1`. Names are listed from the set but
    believed only from entries, which `secret` authenticates.
    """

    def __init__(
        self,
        link: RedisLink,
        counters: RegistryCounters,
        namespace: str,
        secret: Secret,
        max_entry_bytes: int,
        patient: RedisLink | None = None,
    ) -> None:
        """`counters` are those that the links count in. The `patient` link, if there is one, is for what no generation waits for."""
        self._link = link
        self._patient = patient or link
        self.counters = counters
        self._names = f"{namespace}:registry:{FORMAT_VERSION}"
        self._secret = secret
        self._max_bytes = max_entry_bytes

    async def get(self, name: str) -> GrammarEntry | None:
        """What the name stands for, None where it is not registered.

        Raises:
            EntryError: what is stored under the name is not ours.
            CacheUnavailable: Redis does not answer.
        """
        (data,) = await self._read([name], self._link)
        return self._entry(name, data) if data else None

    async def current(self, name: str) -> GrammarEntry | None:
        """As `get`, for whoever is about to change it, and can wait. Raises EntryError, CacheUnavailable."""
        (data,) = await self._read([name], self._patient)
        return self._entry(name, data) if data else None

    async def add(self, entry: GrammarEntry, most: int) -> Stored:
        """Store an entry under a name that is free, while there are fewer than `most` of them. Raises CacheUnavailable."""
        if await self._patient.ask(lambda redis: redis.scard(self._names)) >= most:
            return Stored.FULL
        return Stored.NEW if await self._put(entry, only_if_free=True) else Stored.TAKEN

    async def replace(self, entry: GrammarEntry) -> None:
        """Store an entry whether or not its name is free. Raises CacheUnavailable."""
        await self._put(entry, only_if_free=False)

    async def delete(self, name: str) -> bool:
        """Whether the name was registered; now it is not. Raises CacheUnavailable."""

        async def delete(redis: Redis) -> bool:
            async with redis.pipeline(transaction=True) as pipeline:
                pipeline.delete(self._place(name))
                pipeline.srem(self._names, name)
                deleted, _ = await pipeline.execute()
            return bool(deleted)

        return await self._patient.ask(delete)

    async def entries(self, after: str = "") -> AsyncIterator[GrammarEntry]:
        """All entries that are ours and come after a name, sorted by name. Raises CacheUnavailable, also in the middle."""
        found = await self._patient.ask(lambda redis: cast(Awaitable[set[bytes]], redis.smembers(self._names)))
        names = sorted(name for name in (one.decode("utf-8", "replace") for one in found) if name > after)
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            for name, data in zip(batch, await self._read(batch, self._patient), strict=True):
                try:
                    if data:
                        yield self._entry(name, data)
                except EntryError:
                    continue

    async def close(self) -> None:
        await self._link.close()
        if self._patient is not self._link:
            await self._patient.close()

    async def _read(self, names: Sequence[str], link: RedisLink) -> list[bytes]:
        """What is stored under the names, empty where nothing is."""

        async def read(redis: Redis) -> list[bytes]:
            async with redis.pipeline(transaction=False) as pipeline:
                for name in names:
                    # An oversized value is cut, so that its MAC cannot hold, and not transferred.
                    pipeline.getrange(self._place(name), 0, self._max_bytes)
                return [_bytes(answer) for answer in await pipeline.execute(raise_on_error=False)]

        return await link.ask(read)

    async def _put(self, entry: GrammarEntry, only_if_free: bool) -> bool:
        data = seal(entry, self._place(entry.id), self._secret)

        async def put(redis: Redis) -> bool:
            async with redis.pipeline(transaction=True) as pipeline:
                pipeline.set(self._place(entry.id), data, nx=only_if_free)
                pipeline.sadd(self._names, entry.id)
                stored, _ = await pipeline.execute()
            return bool(stored)

        return await self._patient.ask(put)

    def _entry(self, name: str, data: bytes) -> GrammarEntry:
        try:
            return unseal(data, self._place(name), self._secret)
        except EntryError:
            self.counters.damaged += 1
            raise

    def _place(self, name: str) -> str:
        return f"{self._names}:{name}"


def _bytes(answer: bytes | Exception) -> bytes:
    if isinstance(answer, ResponseError) and str(answer).startswith(WRONG_TYPE):
        return WRONG_TYPE.encode()  # there is something, and it is no entry
    if isinstance(answer, Exception):
        raise answer
    return answer
