"""Makes grammars ready before an engine hears of them, and remembers which are."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from deployments.pool import CompilePool
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest
from grammar_service.resolve import ResolvedGrammar, resolve
from grammar_service.spec import GrammarSpec

REMEMBERED = 10_000
FRESH_S = 60.0
LONG_TEXT = 16_384  # characters; longer specs are resolved in a thread, since a hostile one can take a second


@dataclass(frozen=True, slots=True)
class _Known:
    key: str
    backend: str
    until: float


class PreparedGrammars:
    """`fingerprint` is the tokenizer's. A grammar counts as ready for a minute after the pool has said so; should it be gone by
    then, the model replica asks the pool again."""

    def __init__(self, pool: CompilePool, limits: Limits, fingerprint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._limits = limits
        self._fingerprint = fingerprint
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def ready(self, spec: GrammarSpec) -> ResolvedGrammar:
        """The grammar, which the pool has compiled.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        digest = _digest(spec)  # and not the spec itself: ten thousand long ones would fill the memory
        known = self._known.get(digest)
        if known is not None and self._clock() < known.until:
            self._known.move_to_end(digest)
            return ResolvedGrammar(spec, known.key, known.backend)
        grammar = await self._resolved(spec)
        await self._pool.prepare(CompileRequest(grammar.spec, grammar.key, grammar.backend))
        self._remember(digest, grammar)
        return grammar

    async def _resolved(self, spec: GrammarSpec) -> ResolvedGrammar:
        if len(spec.text) < LONG_TEXT:
            return resolve(spec, self._limits, self._fingerprint)
        return await asyncio.to_thread(resolve, spec, self._limits, self._fingerprint)

    def _remember(self, digest: bytes, grammar: ResolvedGrammar) -> None:
        self._known[digest] = _Known(grammar.key, grammar.backend, self._clock() + FRESH_S)
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _digest(spec: GrammarSpec) -> bytes:
    return blake2b(f"{spec.kind}\0{spec.whitespace}\0{spec.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
