"""The registry in Redis: one sealed entry a name and tenant, without expiry, and what each tenant's entries take."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from grammar_service.artifacts.cache.bounded_hash import READ_BOUNDED_HASH
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.errors import EntryError
from grammar_service.mac import Secret
from grammar_service.registry.entry import GrammarEntry, seal, unseal
from grammar_service.registry.room import DELETE, PUT, Room, Stored

FORMAT_VERSION = 2
"""Part of every place: entries of another layout are never read."""
WRONG_TYPE = "WRONGTYPE"
BATCH = 8
"""Entries that one call reads: all of the largest size, they still come within a call's time."""

MOST_FIELDS, MOST_FIELD_BYTES = 100_000, 4 << 20
"""Bounds for reading the hashes of names and of tenants: a hundred times the default of `grammar.max_registered`."""


@dataclass(slots=True)
class RegistryCounters(LinkCounters):
    """`damaged` counts entries that were not ours, `from_memory` lookups that were answered without Redis."""

    damaged: int = 0
    from_memory: int = 0


class RegistryStore:
    """Every call ends as the link's do: in time, or with CacheUnavailable.

    Entries are at `<namespace>:registry:2:<tenant>:<id>`, their sizes by id in the hash `<namespace>:registry:2:<tenant>`, and what each
    tenant has by tenant in the hash `<namespace>:registry:2`; neither ids nor tenants have colons. Names are listed from the hashes but
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
        self._root = f"{namespace}:registry:{FORMAT_VERSION}"
        self._secret = secret
        self._max_bytes = max_entry_bytes

    async def get(self, name: str, tenant: str = "") -> GrammarEntry | None:
        """What the name stands for, None where the tenant has not registered it.

        Raises:
            EntryError: what is stored under the name is not ours.
            CacheUnavailable: Redis does not answer.
        """
        return await self._get(name, tenant, self._link)

    async def current(self, name: str, tenant: str = "") -> GrammarEntry | None:
        """As `get`, for whoever is about to change it, and can wait. Raises EntryError, CacheUnavailable."""
        return await self._get(name, tenant, self._patient)

    async def add(self, entry: GrammarEntry, room: Room) -> Stored:
        """Store an entry where its tenant has no other of its name, and there is room for it. Raises CacheUnavailable."""
        return await self._put(entry, room, only_if_free=True)

    async def replace(self, entry: GrammarEntry, room: Room) -> Stored:
        """Store an entry whether or not its name is free. Raises CacheUnavailable."""
        return await self._put(entry, room, only_if_free=False)

    async def delete(self, name: str, tenant: str = "") -> bool:
        """Whether the tenant had registered the name; now it has not. Raises CacheUnavailable."""
        keys = self._keys(name, tenant)
        return bool(await self._patient.ask(lambda redis: cast(Awaitable[int], redis.eval(DELETE, len(keys), *keys, name, tenant))))

    async def entries(self, tenant: str | None = None, after: str = "") -> AsyncIterator[GrammarEntry]:
        """All entries that are ours, of one tenant or of all, sorted, those that come after a place: a name, or `<tenant>:<name>` of all.
        Raises CacheUnavailable, also in the middle."""
        first, _, name_after = after.rpartition(":") if tenant is None else (tenant, "", after)
        owners = [tenant] if tenant is not None else [one for one in await self._fields(self._root) if one >= first]
        for owner in owners:
            names = [name for name in await self._fields(self._sizes(owner)) if owner != first or name > name_after]
            for start in range(0, len(names), BATCH):
                batch = names[start : start + BATCH]
                for name, data in zip(batch, await self._read(batch, owner, self._patient), strict=True):
                    try:
                        if data:
                            yield self._entry(name, owner, data)
                    except EntryError:
                        continue

    async def close(self) -> None:
        await self._link.close()
        if self._patient is not self._link:
            await self._patient.close()

    async def _get(self, name: str, tenant: str, link: RedisLink) -> GrammarEntry | None:
        (data,) = await self._read([name], tenant, link)
        return self._entry(name, tenant, data) if data else None

    async def _fields(self, key: str) -> list[str]:
        bounds = (MOST_FIELDS, MOST_FIELD_BYTES)
        found = await self._patient.ask(lambda redis: cast(Awaitable[list[bytes]], redis.eval(READ_BOUNDED_HASH, 1, key, *bounds)))
        return sorted(field.decode("utf-8", "replace") for field in found[::2])

    async def _read(self, names: Sequence[str], tenant: str, link: RedisLink) -> list[bytes]:
        """What is stored under the names, empty where nothing is."""

        async def read(redis: Redis) -> list[bytes]:
            async with redis.pipeline(transaction=False) as pipeline:
                for name in names:
                    # An oversized value is cut, so that its MAC cannot hold, and not transferred.
                    pipeline.getrange(self._place(name, tenant), 0, self._max_bytes)
                return [_bytes(answer) for answer in await pipeline.execute(raise_on_error=False)]

        return await link.ask(read)

    async def _put(self, entry: GrammarEntry, room: Room, only_if_free: bool) -> Stored:
        keys = self._keys(entry.id, entry.tenant)
        data = seal(entry, keys[0], self._secret)
        bounds = (room.names, room.tenant_bytes, room.all_bytes)
        arguments = (*keys, data, entry.id, entry.tenant, int(only_if_free), *bounds)
        return Stored(await self._patient.ask(lambda redis: cast(Awaitable[int], redis.eval(PUT, len(keys), *arguments))))

    def _entry(self, name: str, tenant: str, data: bytes) -> GrammarEntry:
        try:
            return unseal(data, self._place(name, tenant), self._secret)
        except EntryError:
            self.counters.damaged += 1
            raise

    def _keys(self, name: str, tenant: str) -> tuple[str, str, str]:
        return self._place(name, tenant), self._sizes(tenant), self._root

    def _place(self, name: str, tenant: str) -> str:
        return f"{self._sizes(tenant)}:{name}"

    def _sizes(self, tenant: str) -> str:
        return f"{self._root}:{tenant}"


def _bytes(answer: bytes | Exception) -> bytes:
    if isinstance(answer, ResponseError) and str(answer).startswith(WRONG_TYPE):
        return WRONG_TYPE.encode()  # there is something, and it is no entry
    if isinstance(answer, Exception):
        raise answer
    return answer
