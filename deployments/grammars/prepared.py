"""Makes grammars ready before an engine hears of them, and remembers which are."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from deployments.grammars.pool import CompilePool
from grammar_service.errors import GrammarTooLarge, UnsupportedGrammar
from grammar_service.limits import Limits, check_size
from grammar_service.messages import Prepared, ReadyGrammar
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution, resolve, rules_of
from grammar_service.spec import GrammarSpec
from grammar_service.warning import ConstraintWarning

REMEMBERED = 10_000
FRESH_S = 60.0
STOPGAP_FRESH_S = 0.5
LONG_TEXT = 16_384  # characters; longer specs are resolved in the sandbox, since a hostile one can take a second


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


class PreparedGrammars:
    """`fingerprint` is the tokenizer's. A grammar counts as ready for a minute after the pool has said so; should it be gone by
    then, the model replica asks the pool again. A stopgap counts for half a second, since a faster artifact is on its way."""

    def __init__(self, pool: CompilePool, limits: Limits, fingerprint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._limits = limits
        self._fingerprint = fingerprint
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
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
        if known is not None and self._clock() < known.until:
            self._known.move_to_end(digest)
            spec = known.relaxed or spec
            return ReadyGrammar(spec, known.key, known.backend, known.routing_key, pinned, warnings=known.warnings, left_out=known.left_out)
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
        if len(spec.text) < LONG_TEXT:
            try:
                return resolve(spec, self._limits, self._fingerprint)
            except UnsupportedGrammar:
                if not relax:
                    raise
        check_size(spec, self._limits)
        return await self._pool.resolve(spec, tenant, Relax.UNENFORCED if relax else Relax.NOTHING)

    def _remember(self, digest: bytes, prepared: Prepared, resolution: Resolution) -> None:
        fresh_s = FRESH_S if prepared.key == resolution.key else STOPGAP_FRESH_S
        until, relaxed = self._clock() + fresh_s, resolution.spec if resolution.left_out else None
        self._known[digest] = _Known(
            prepared.key, prepared.backend, resolution.key, resolution.warnings, until, relaxed, resolution.left_out
        )
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _digest(spec: GrammarSpec, relax: bool) -> bytes:
    options = f"{spec.kind}\0{spec.whitespace}\0{spec.closed}\0{spec.refuses_unknown}\0{spec.formats}\0{spec.canonical}\0{relax}"
    return blake2b(f"{options}\0{spec.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
