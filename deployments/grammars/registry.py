"""Named grammars: registered, looked up, listed, deleted; and compiled before traffic needs them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Protocol

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import NamedGrammar, Requested
from deployments.errors import translated
from deployments.grammars.registration import Registration, read_registration
from deployments.grammars.registry_errors import damaged, fixed, no_room, no_store, not_found, silent, taken, unknown_name
from grammar_service.bounded_cache import BoundedCache
from grammar_service.errors import CacheUnavailable, EntryError, GrammarError, MaskcastError, PoolBusy, PoolUnavailable
from grammar_service.messages import CompileRequest, Prepared
from grammar_service.registry import GrammarEntry, GrammarNames, RegistryStore, ResolvedAs, Room, Stored
from grammar_service.registry.entry import OVERHEAD_BYTES
from grammar_service.resolve import Resolution
from grammar_service.sandbox.background_thread import MOST_WAITING, BackgroundThread
from grammar_service.sandbox.turns import FairTurns
from grammar_service.spec import GrammarSpec
from grammar_service.warning import characters

logger = logging.getLogger(__name__)

PAGE = 100
"""Grammars that one list has at most."""
REMEMBERED, MOST_BYTES = 2000, 16 << 20
MAX_LISTS = 2
"""At a time: each reads entries of up to 512 KiB, eight at once."""
NOBODY = ""  # the tenant for what no request waits for


@dataclass(slots=True)
class AheadCounters:
    """Named grammars that were compiled ahead of traffic, and those that could not be."""

    compiled_ahead: int = 0
    not_compiled_ahead: int = 0


class Pool(Protocol):
    """What the registry asks of the compile pool; raises as `CompilePool` does."""

    async def prepare(self, request: CompileRequest) -> Prepared: ...


class GrammarRegistry:
    """`store` is None where no Redis is configured: then only the settings name grammars. `resolve` gives the spec of a
    tenant its backend and key by `rules` (`grammar_service.resolve.rules_of`), and raises GrammarError, PoolBusy or PoolUnavailable.

    Names are a tenant's own, but for those of the settings; there is `room` for so many. `defaults` are for constraints that do not choose.
    `report` gets all counters; registrations are read in `background`.
    """

    def __init__(
        self,
        names: GrammarNames,
        store: RegistryStore | None,
        pool: Pool,
        resolve: Callable[[GrammarSpec, str], Awaitable[Resolution]],
        rules: str,
        room: Room,
        defaults: ConstraintDefaults,
        report: Callable[[Mapping[str, int]], None],
        background: BackgroundThread,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._names = names
        self._store = store
        self._pool = pool
        self._resolve = resolve
        self._rules = rules
        self._resolved_once: BoundedCache[str, ResolvedAs] = BoundedCache(REMEMBERED, MOST_BYTES, lambda told: characters(told.warnings))
        self._room = room
        self._defaults = defaults
        self._report = report
        self._clock = clock
        self._ahead = AheadCounters()
        self._background = background
        self._lists = FairTurns(range(MAX_LISTS), MOST_WAITING, time.monotonic)

    async def spec(self, named: NamedGrammar, tenant: str = NOBODY) -> GrammarSpec:
        """What a request's name stands for. Raises ApiError: 400 for an unknown name, 503 where nobody can tell now."""
        entry = await self._find(named.id, tenant)
        if entry is None:
            raise unknown_name(named.id, named.field)
        return entry.spec

    async def register(self, body: Mapping[str, Any], tenant: str = NOBODY) -> tuple[dict[str, Any], bool]:
        """The object of the grammar in `body`, compiled for `tenant` and stored; False where it was there already.

        Raises:
            ApiError: the constraint or the name is at fault, or the grammar cannot be compiled or stored now.
        """
        registration = await self._background.run(tenant, read_registration, body, self._defaults)  # writing a large schema takes long
        if self._store is None and not self._names.is_fixed(registration.id):
            raise no_store()
        grammar = await self._compiled(registration.constraint, tenant)
        try:
            entry, is_new = await self._stored(registration, grammar, tenant)
        except CacheUnavailable as error:
            raise silent("registered") from error
        finally:
            self._report(self.counters())
        self._names.remember(entry)
        return _object(entry, await self._resolved(entry)), is_new

    async def get(self, name: str, tenant: str = NOBODY) -> dict[str, Any]:
        """The grammar's object. Raises ApiError."""
        entry = await self._find(name, tenant)
        if entry is None:
            raise not_found(name)
        return _object(entry, await self._resolved(entry))

    async def list_page(self, after: str = "", most: int = PAGE, tenant: str | None = NOBODY) -> dict[str, Any]:
        """At most so many grammars of a tenant, or of all, as an OpenAI list, those of the settings first. `after` is the `last_id` of
        another page: a name, or of all tenants' `<tenant>:<name>`. Raises ApiError."""
        try:
            async with self._lists.turn(tenant or NOBODY):
                data, places, has_more = await self._page(after, most, tenant)
        except CacheUnavailable as error:
            raise silent("listed") from error
        first, last = (places[0], places[-1]) if places else (None, None)
        return {"object": "list", "data": data, "has_more": has_more, "first_id": first, "last_id": last}

    async def _page(self, after: str, most: int, tenant: str | None) -> tuple[list[dict[str, Any]], list[str], bool]:
        """The objects, the place of each, and whether there are more. Entries with their texts are not kept."""
        data, places = list[dict[str, Any]](), list[str]()
        async with aclosing(self._names.entries(tenant, after)) as entries:
            async for entry in entries:
                if len(data) == most:
                    return data, places, True
                data.append(_object(entry, await self._resolved(entry)))
                places.append(self._names.place(entry, tenant))
        return data, places, False

    async def delete(self, name: str, tenant: str = NOBODY) -> dict[str, Any]:
        """Raises ApiError."""
        if self._names.is_fixed(name):
            raise fixed(name)
        if self._store is None:
            raise no_store()
        try:
            deleted = await self._store.delete(name, tenant)
        except CacheUnavailable as error:
            raise silent("deleted") from error
        self._names.forget(name, tenant)
        if not deleted:
            raise not_found(name)
        return {"object": "grammar.deleted", "id": name, "deleted": True}

    async def compile_ahead(self) -> None:
        """Have all named grammars compiled and pinned, one after the other; what fails is logged and counted."""
        try:
            async for entry in self._names.entries():
                await self._compile_entry(entry)
        except CacheUnavailable as error:
            self._ahead.not_compiled_ahead += 1
            logger.warning("registered grammars are not compiled ahead: %s", error)
        self._report(self.counters())

    def counters(self) -> dict[str, int]:
        """Counters that only grow, of the registry's own Redis connection too."""
        return {**asdict(self._ahead), **(asdict(self._store.counters) if self._store else {})}

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    async def _find(self, name: str, tenant: str) -> GrammarEntry | None:
        try:
            entry = await self._names.find(name, tenant)
        except CacheUnavailable as error:
            raise silent("looked up") from error
        except EntryError as error:
            raise damaged(name) from error
        finally:
            self._report(self.counters())
        return entry

    async def _stored(self, registration: Registration, grammar: Resolution, tenant: str) -> tuple[GrammarEntry, bool]:
        name = registration.id
        if self._store is None or self._names.is_fixed(name):
            return await self._already_fixed(name, grammar), False
        entry = GrammarEntry(name, grammar.spec, int(self._clock()), _kept(self._resolved_as(grammar)), tenant)
        while True:
            existing, occupied = await self._current(name, tenant)
            if existing is not None and await self._is_same(existing, grammar):
                return existing, False
            if existing is not None and not registration.replace:
                raise taken(name)
            stored = await (self._store.replace if occupied else self._store.add)(entry, self._room)
            if stored is Stored.TAKEN:  # somebody was quicker: look what it stands for now
                continue
            if stored is not Stored.NEW:
                raise no_room(stored, self._room)
            return entry, True

    async def _already_fixed(self, name: str, grammar: Resolution) -> GrammarEntry:
        existing = await self._names.find(name)
        if existing is None or not await self._is_same(existing, grammar):
            raise fixed(name)
        return existing

    async def _current(self, name: str, tenant: str) -> tuple[GrammarEntry | None, bool]:
        """What a name stands for by the store's own word, and whether anything is stored there: it may be damaged."""
        assert self._store is not None, "callers have checked"
        try:
            entry = await self._store.current(name, tenant)
        except EntryError:
            return None, True
        return entry, entry is not None

    async def _is_same(self, entry: GrammarEntry, grammar: Resolution) -> bool:
        return (await self._resolved(entry)).key == grammar.key

    async def _resolved(self, entry: GrammarEntry) -> ResolvedAs:
        """As the entry says, or this process has found before: it takes tens of milliseconds of the event loop. Without a key where limits
        or versions have changed since, so that it is enforced no longer."""
        if entry.resolved is not None and entry.resolved.by == self._rules:
            return entry.resolved
        if (known := self._resolved_once.get(_digest(entry.spec))) is None:
            try:
                known = self._resolved_as(await self._resolve(entry.spec, NOBODY))
            except GrammarError:
                known = ResolvedAs(self._rules)
            except (PoolBusy, PoolUnavailable) as error:
                raise translated(error) from None
            self._remember(entry.spec, known)
            await asyncio.sleep(0)  # others have waited
        return known

    def _remember(self, spec: GrammarSpec, resolved: ResolvedAs) -> None:
        self._resolved_once.put(_digest(spec), resolved)

    def _resolved_as(self, grammar: Resolution) -> ResolvedAs:
        return ResolvedAs(self._rules, grammar.key, grammar.backend, grammar.warnings)

    async def _compiled(self, constraint: Requested, tenant: str) -> Resolution:
        try:
            grammar = await self._resolve(constraint.spec, tenant)
            await self._pool.prepare(grammar.request(tenant, constraint.deadline_s, pinned=True))
        except (GrammarError, PoolBusy, PoolUnavailable) as error:
            raise translated(error, constraint.field) from None
        return grammar

    async def _compile_entry(self, entry: GrammarEntry) -> None:
        try:
            grammar = await self._resolve(entry.spec, NOBODY)
            self._remember(entry.spec, self._resolved_as(grammar))
            await self._pool.prepare(grammar.request(NOBODY, pinned=True))
            self._ahead.compiled_ahead += 1
        except MaskcastError as error:
            self._ahead.not_compiled_ahead += 1
            logger.warning("the grammar %r is not compiled ahead: %s", entry.id, error)


def _kept(resolved: ResolvedAs) -> ResolvedAs | None:
    """What is stored with an entry, for which there is so much room."""
    return resolved if len(repr(resolved)) < OVERHEAD_BYTES // 4 else None


def _digest(spec: GrammarSpec) -> str:
    return blake2b(repr(spec).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _object(entry: GrammarEntry, grammar: ResolvedAs) -> dict[str, Any]:
    return {
        "object": "grammar",
        "id": entry.id,
        "created": entry.created,
        **({"tenant": entry.tenant} if entry.tenant else {}),
        "kind": str(entry.spec.kind),
        "key": grammar.key,
        "backend": grammar.backend,
        **({"maskcast": {"warnings": [warning.body() for warning in grammar.warnings]}} if grammar.warnings else {}),
    }
