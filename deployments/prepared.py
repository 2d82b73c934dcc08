"""Makes grammars ready before an engine hears of them, and remembers which are."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from deployments.pool import CompilePool
from grammar_service.limits import Limits, check_size
from grammar_service.messages import Prepared
from grammar_service.resolve import ResolvedGrammar, resolve
from grammar_service.spec import GrammarSpec

REMEMBERED = 10_000
FRESH_S = 60.0
STOPGAP_FRESH_S = 0.5
LONG_TEXT = 16_384  # characters; longer specs are resolved in the sandbox, since a hostile one can take a second


@dataclass(frozen=True, slots=True)
class _Known:
    """For the grammar with the key `home`."""

    prepared: Prepared
    home: str
    until: float

    def grammar(self, spec: GrammarSpec, pinned: bool) -> ResolvedGrammar:
        prepared = self.prepared
        return ResolvedGrammar(spec, prepared.key, prepared.backend, pinned=pinned, artifact=prepared.artifact, home=self.home)


class PreparedGrammars:
    """`fingerprint` is the tokenizer's. A grammar counts as ready for a minute after the pool has said so; should it be gone by
    then, the model replica asks the pool again. A stopgap counts for half a second, since a faster artifact is on its way."""

    def __init__(self, pool: CompilePool, limits: Limits, fingerprint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._limits = limits
        self._fingerprint = fingerprint
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def ready(self, spec: GrammarSpec, tenant: str = "", deadline_s: float | None = None, pinned: bool = False) -> ResolvedGrammar:
        """The grammar, which the pool has compiled for `tenant`, or the stopgap that it has; once compiled, a pinned one stays.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        digest = _digest(spec)  # and not the spec itself: ten thousand long ones would fill the memory
        known = self._known.get(digest)
        if known is not None and self._clock() < known.until:
            self._known.move_to_end(digest)
            return known.grammar(spec, pinned)
        grammar = await self.resolved(spec, tenant)
        prepared = await self._pool.prepare(replace(grammar.request(tenant, deadline_s), pinned=pinned))
        known = _Known(prepared, grammar.key, self._clock() + (FRESH_S if prepared.key == grammar.key else STOPGAP_FRESH_S))
        self._remember(digest, known)
        return known.grammar(spec, pinned)

    async def resolved(self, spec: GrammarSpec, tenant: str = "") -> ResolvedGrammar:
        """The grammar's backend and key; nothing is compiled. Raises as `ready`."""
        if len(spec.text) < LONG_TEXT:
            return resolve(spec, self._limits, self._fingerprint)
        check_size(spec, self._limits)
        return await self._pool.resolve(spec, tenant)

    def _remember(self, digest: bytes, known: _Known) -> None:
        # Without its bytes: by the next request the replica has them, or asks for them.
        self._known[digest] = replace(known, prepared=replace(known.prepared, artifact=None))
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _digest(spec: GrammarSpec) -> bytes:
    return blake2b(f"{spec.kind}\0{spec.whitespace}\0{spec.closed}\0{spec.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
