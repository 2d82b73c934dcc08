"""Makes grammars ready before an engine hears of them, and remembers which are."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from deployments.pool import CompilePool
from grammar_service.limits import Limits
from grammar_service.messages import CompileRequest
from grammar_service.resolve import ResolvedGrammar, resolve
from grammar_service.spec import GrammarSpec

REMEMBERED = 10_000
FRESH_S = 60.0


class PreparedGrammars:
    """`fingerprint` is the tokenizer's. A grammar counts as ready for a minute after the pool has said so; should it be gone by
    then, the model replica asks the pool again."""

    def __init__(self, pool: CompilePool, limits: Limits, fingerprint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._limits = limits
        self._fingerprint = fingerprint
        self._clock = clock
        self._known: OrderedDict[str, float] = OrderedDict()

    async def ready(self, spec: GrammarSpec) -> ResolvedGrammar:
        """The grammar, which the pool has compiled.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        grammar = resolve(spec, self._limits, self._fingerprint)
        if self._known.get(grammar.key, float("-inf")) < self._clock() - FRESH_S:
            await self._pool.prepare(CompileRequest(grammar.spec, grammar.key, grammar.backend))
            self._remember(grammar.key)
        return grammar

    def _remember(self, key: str) -> None:
        self._known[key] = self._clock()
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
