"""What names stand for: those of the settings, those in Redis, and what this process has seen of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import msgspec

from grammar_service.artifacts.cache.memory import MemoryCache
from grammar_service.errors import CacheUnavailable, EntryError
from grammar_service.registry.entry import ENTRY, GrammarEntry, is_valid_id
from grammar_service.registry.store import RegistryStore

SEEN_BYTES = 64 << 20


class GrammarNames:
    """`fixed` never change, are everybody's, and come before what the store has of a tenant. The store is asked each time, so that what is
    deleted there is gone at once everywhere; what this process has seen of it helps out only where the store does not answer."""

    def __init__(self, fixed: Mapping[str, GrammarEntry], store: RegistryStore | None, seen_bytes: int = SEEN_BYTES) -> None:
        self._fixed = fixed
        self._store = store
        self._seen: MemoryCache[bytes] = MemoryCache(seen_bytes)

    def is_fixed(self, name: str) -> bool:
        return name in self._fixed

    async def find(self, name: str, tenant: str = "") -> GrammarEntry | None:
        """What the name stands for where the tenant says it, None where it is not known.

        Raises:
            CacheUnavailable, EntryError: the store does not tell, and this process has not seen the tenant's name.
        """
        if name in self._fixed or self._store is None or not is_valid_id(name):
            return self._fixed.get(name)
        try:
            entry = await self._store.get(name, tenant)
        except (CacheUnavailable, EntryError):
            seen = self._seen.get(_place(name, tenant))
            if seen is None:
                raise
            self._store.counters.from_memory += 1
            return ENTRY.decode(seen)
        if entry is None:
            self.forget(name, tenant)
        else:
            self.remember(entry)
        return entry

    async def entries(self, tenant: str | None = None, after: str = "") -> AsyncGenerator[GrammarEntry, None]:
        """The fixed ones and those of one tenant, or of all, that come after a place (`place`). Raises CacheUnavailable, also in the
        middle."""
        names = list(self._fixed)
        last = after.removeprefix(":") if tenant is None else after
        if not after or last in self._fixed:
            for name in names[names.index(last) + 1 :] if after else names:
                yield self._fixed[name]
            after = ""
        if self._store is None:
            return
        async for entry in self._store.entries(tenant, after):
            if entry.id not in self._fixed:
                self.remember(entry)
                yield entry

    def place(self, entry: GrammarEntry, tenant: str | None) -> str:
        """Where an entry stands in the list of a tenant, or of all."""
        return entry.id if tenant is not None else _place(entry.id, entry.tenant)

    def remember(self, entry: GrammarEntry) -> None:
        self._seen.put(_place(entry.id, entry.tenant), msgspec.msgpack.encode(entry))

    def forget(self, name: str, tenant: str = "") -> None:
        self._seen.discard(_place(name, tenant))


def _place(name: str, tenant: str) -> str:
    return f"{tenant}:{name}"  # neither has colons
