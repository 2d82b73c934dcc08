"""Part `ready`: from a grammar that another replica has compiled to the first mask here.

Three ways take turns on each case: ours, from the encoded artifact in Redis; always fetching the bare library's own tables from
Redis; and compiling in a bare compiler. Ours and the bare compiler have seen the warm cases before, and the case itself never.
Grammars on llguidance have no tables and no warm compiler: for them the bare library compiles.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import redis
import xgrammar

from deployments.reporting.stopwatch import ms_since, timed
from grammar_service.artifacts.reader import Reader
from grammar_service.backends.xgrammar.recipe import recipe_of
from grammar_service.errors import ArtifactError, GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import Resolution, resolve
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.cases import Case
from load_tests.grammar.codec import raw_name
from load_tests.grammar.messages import Assignment, Began, Measured, RedisAddress, Values
from load_tests.grammar.peers import BareLlguidance, BareXgrammar
from load_tests.grammar.pool import open_redis


def measure(assignment: Assignment, tokenizer: GrammarTokenizer) -> Iterator[Began | Measured]:
    """One row a case. Raises ArtifactError: there is no Redis."""
    if assignment.redis is None:
        raise ArtifactError("what is ready elsewhere is in Redis, and there is none")
    with asyncio.Runner() as runner:
        ways = Ways(assignment.redis, assignment.secret, tokenizer, runner)
        for case in assignment.warm:
            yield Began(case.name)
            ways.figures(case, fetch=False)
        for index, case in enumerate(assignment.cases):
            yield Began(case.name)
            yield Measured(case.name, ways.figures(case, ours_first=(index + assignment.turn) % 2 == 0))


class Ways:
    """The three ways to the first mask."""

    def __init__(self, address: RedisAddress, secret: bytes, tokenizer: GrammarTokenizer, runner: asyncio.Runner) -> None:
        self._address = address
        self._fingerprint = tokenizer.fingerprint
        self._runner = runner
        self._cache = open_redis(address)
        self._client = redis.Redis.from_url(address.url, password=address.password)
        self._reader = Reader(tokenizer, secret)
        self._reader.warm_up()
        self._xgrammar = BareXgrammar(tokenizer)
        self._llguidance = BareLlguidance(tokenizer)

    def figures(self, case: Case, fetch: bool = True, ours_first: bool = True) -> Values:
        """`ours_ms`, `fetch_ms` (None without tables in Redis) and `compile_ms`; or the fault that kept one from ending."""
        try:
            grammar = resolve(case.spec, Limits(), self._fingerprint)
            ways = self._ways(case, grammar, fetch)
            taken = {name: way() for name, way in (ways.items() if ours_first else reversed(ways.items()))}
        except (GrammarError, ArtifactError) as error:
            return {"fault": str(error)}
        return {"backend": grammar.backend, "fetch_ms": None, **taken}

    def _ways(self, case: Case, grammar: Resolution, fetch: bool) -> dict[str, Callable[[], float]]:
        ways: dict[str, Callable[[], float]] = {"ours_ms": lambda: self._runner.run(self._ours(grammar))}
        if grammar.backend == "llguidance":
            return {**ways, "compile_ms": lambda: timed(lambda: self._llguidance.first_mask(case.spec))[1]}
        if fetch and self._client.exists(raw_name(self._address.namespace, case.name)):
            ways["fetch_ms"] = lambda: self._first_mask_ms(lambda: self._fetched(case.name))
        recipe = recipe_of(case.spec)
        return {**ways, "compile_ms": lambda: self._first_mask_ms(lambda: self._xgrammar.compile(recipe))}

    async def _ours(self, grammar: Resolution) -> float:
        started = time.perf_counter()
        blob = await self._cache.get(grammar.key)
        if blob is None:
            raise ArtifactError("there is no artifact in Redis: nobody could compile it in time")
        self._reader.first_mask(blob, grammar.key)
        return ms_since(started)

    def _fetched(self, case: str) -> xgrammar.CompiledGrammar:
        text = self._client.get(raw_name(self._address.namespace, case))
        if not isinstance(text, bytes):
            raise ArtifactError("the bare tables have left Redis")
        return self._xgrammar.read(text.decode("utf-8"))

    def _first_mask_ms(self, make: Callable[[], xgrammar.CompiledGrammar]) -> float:
        return timed(lambda: self._xgrammar.first_mask(make()))[1]
