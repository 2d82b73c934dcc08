"""Makes grammars ready before an engine hears of them, and remembers which are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Protocol

from grammar_service.bounded_cache import BoundedCache
from grammar_service.errors import GrammarTooLarge, PoolBusy, PoolUnavailable, UnsupportedGrammar
from grammar_service.limits import Limits, check_size
from grammar_service.messages import CompileRequest, Prepared, ReadyGrammar
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution, resolve, resolves_quickly, rules_of
from grammar_service.spec import GrammarSpec
from grammar_service.warning import ConstraintWarning, characters

REMEMBERED = 10_000
FRESH_S = 60.0
STALE_S = 600.0
"""What nobody has asked for that long may have left the pool's memory; who waits for the pool then gets a stopgap, and no compile."""
STOPGAP_FRESH_S = 0.5
MOST_BYTES = 64 << 20
"""Of all that is remembered: relaxed schemas are as long as those of their requests."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A `ReadyGrammar` until a time, without what is large: by the next request the replica has the artifact, or asks for it. `relaxed` is
    its spec where that is not the request's."""

    key: str
    backend: str
    routing_key: str
    warnings: tuple[ConstraintWarning, ...]
    until: float
    relaxed: GrammarSpec | None
    left_out: tuple[str, ...]

    @property
    def stale_s(self) -> float:
        """How long it may still be used, while the pool is asked again."""
        return STALE_S if self.key == self.routing_key else 0.0

    @property
    def size(self) -> int:
        relaxed = len(self.relaxed.text) if self.relaxed else 0
        return relaxed + characters(self.warnings) + sum(map(len, self.left_out))

    def ready(self, spec: GrammarSpec, pinned: bool) -> ReadyGrammar:
        """`spec` is the request's."""
        return ReadyGrammar(
            self.relaxed or spec, self.key, self.backend, self.routing_key, pinned, warnings=self.warnings, left_out=self.left_out
        )


class Pool(Protocol):
    """What makes grammars; raises as `CompilePool` does."""

    async def prepare(self, request: CompileRequest) -> Prepared: ...

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax) -> Resolution: ...


class PreparedGrammars:
    """`fingerprint` is the tokenizer's. A minute after the pool has said that a grammar is ready it is asked again, behind a request that
    does not wait for it: should the artifact be gone by then, the model replica asks the pool itself. A stopgap counts for half a second,
    since a faster artifact is on its way; then the next request waits, as one does for what was last asked for long ago."""

    def __init__(self, pool: Pool, limits: Limits, fingerprint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._limits = limits
        self._fingerprint = fingerprint
        self._clock = clock
        self._known: BoundedCache[bytes, _Known] = BoundedCache(REMEMBERED, MOST_BYTES, lambda known: known.size)
        self._refreshing: dict[bytes, asyncio.Task[None]] = {}
        self.rules = rules_of(limits, fingerprint)
        """What `resolved` goes by, for those who keep what it says."""

    async def ready(
        self, spec: GrammarSpec, tenant: str = "", deadline_s: float | None = None, pinned: bool = False, relax: bool = False
    ) -> ReadyGrammar:
        """The grammar, which the pool has compiled for `tenant`, or the stopgap that it has; once compiled, a pinned one stays. With
        `relax` it is without what no backend enforces, or can use.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        digest = _digest(spec, relax)  # and not the spec itself: ten thousand long ones would fill the memory
        known = self._known.get(digest)
        if known is not None and (age_s := self._clock() - known.until) < known.stale_s:
            if age_s >= 0 and digest not in self._refreshing:
                request = CompileRequest(known.relaxed or spec, known.key, known.backend, pinned=pinned, tenant=tenant)
                self._refresh(digest, known, request)
            return known.ready(spec, pinned)
        resolution = await self.resolved(spec, tenant, relax)
        try:
            prepared = await self._pool.prepare(replace(resolution.request(tenant, deadline_s), pinned=pinned))
        except (UnsupportedGrammar, GrammarTooLarge):
            if not relax:
                raise
            # A library finds out while it compiles what nobody could have told.
            resolution = await self._pool.resolve(spec, tenant, Relax.UNCOMPILED)
            prepared = await self._pool.prepare(replace(resolution.request(tenant, deadline_s), pinned=pinned))
        self._remember(digest, prepared, resolution)
        return ReadyGrammar(
            resolution.spec,
            prepared.key,
            prepared.backend,
            resolution.key,
            pinned,
            prepared.artifact,
            resolution.warnings,
            resolution.left_out,
        )

    async def resolved(self, spec: GrammarSpec, tenant: str = "", relax: bool = False) -> Resolution:
        """The grammar's backend and key; nothing is compiled. Raises as `ready`."""
        if resolves_quickly(spec):
            try:
                return resolve(spec, self._limits, self._fingerprint)
            except UnsupportedGrammar:
                if not relax:
                    raise
        check_size(spec, self._limits)
        return await self._pool.resolve(spec, tenant, Relax.UNENFORCED if relax else Relax.NOTHING)

    async def close(self) -> None:
        """Nothing is asked any more."""
        refreshing = list(self._refreshing.values())
        for task in refreshing:
            task.cancel()
        await asyncio.gather(*refreshing, return_exceptions=True)

    def _refresh(self, digest: bytes, known: _Known, request: CompileRequest) -> None:
        # In no context: the request's spans may have ended by the time the pool answers.
        task = Context().run(asyncio.create_task, self._refreshed(digest, known, request))
        self._refreshing[digest] = task
        task.add_done_callback(lambda _: self._refreshing.pop(digest))

    async def _refreshed(self, digest: bytes, known: _Known, request: CompileRequest) -> None:
        try:
            await self._pool.prepare(request)
        except (PoolBusy, PoolUnavailable):
            return  # the next request tries again
        except Exception:  # noqa: BLE001  # the task's outermost frame
            # Whoever comes next is to wait, and to be told.
            if self._known.get(digest) is known:
                self._known.discard(digest)
            return
        if self._known.get(digest) is known:
            self._known.put(digest, replace(known, until=self._clock() + FRESH_S))

    def _remember(self, digest: bytes, prepared: Prepared, resolution: Resolution) -> None:
        fresh_s = FRESH_S if prepared.key == resolution.key else STOPGAP_FRESH_S
        until, relaxed = self._clock() + fresh_s, resolution.spec if resolution.left_out else None
        known = _Known(prepared.key, prepared.backend, resolution.key, resolution.warnings, until, relaxed, resolution.left_out)
        self._known.put(digest, known)


def _digest(spec: GrammarSpec, relax: bool) -> bytes:
    reading = (spec.whitespace, spec.closed, spec.any_order, spec.refuses_unknown, spec.formats, spec.canonical)
    options = "\0".join(map(str, (spec.kind, *reading, relax)))
    return blake2b(f"{options}\0{spec.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
