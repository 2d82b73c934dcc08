"""A collection of real schemas through every way to judge instances: the service, either library alone, and a validator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from grammar_service.conformance.acceptors import Compile, bare_llguidance, bare_xgrammar, chosen
from grammar_service.conformance.isolation import in_children
from grammar_service.conformance.judging import Judged, judged_by_grammar, judged_by_validator, judged_with_check
from grammar_service.conformance.schemastore import Apart, Collected, read_schema, read_schemastore, schema_files
from grammar_service.conformance.suite import Case
from grammar_service.errors import GrammarError
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

OURS, CHECKED, XGRAMMAR, LLGUIDANCE = "maskcast", "maskcast, unenforceable: check", "xgrammar alone", "llguidance alone"
VALIDATOR = "validator"
GRAMMARS = (OURS, XGRAMMAR, LLGUIDANCE)
"""The ways that are asked about every schema; CHECKED is what the service makes of those that OURS refuses, where a request allows it."""
DEADLINE_S = 20.0
MEMORY_BYTES = 4 << 30

Progress = Callable[[int, int], None]
"""Called with how many schemas are done, and how many there are."""


@dataclass(slots=True)
class Judgement:
    """One schema by all ways; `unread` as in `Collected`."""

    name: str
    cases: tuple[Case, ...]
    unread: int
    by_way: dict[str, Judged] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """By masks alone."""
        return OURS in self.by_way and self.by_way[OURS].refused is not None

    @property
    def is_whole(self) -> bool:
        return len(self.by_way) == len(GRAMMARS) + 1 + self.is_refused

    def way(self, name: str) -> Judged:
        """What a way makes of the schema; where masks alone serve it, nothing is left to a check."""
        return self.by_way[OURS if name == CHECKED and not self.is_refused else name]


@dataclass(frozen=True, slots=True)
class Findings:
    """`apart`: the schemas that are set apart, with the reason."""

    judgements: tuple[Judgement, ...]
    apart: dict[str, Apart]


def run_collection(folder: Path, tokenizer: GrammarTokenizer, progress: Progress | None = None, at_once: int | None = None) -> Findings:
    """Judge every schema of a checkout of SchemaStore, as JSON Schema means it, by its instances, as `json.dumps` writes them.

    Each schema meets each way in a process of its own, `at_once` of them at a time (one a processor); what takes over DEADLINE_S, or
    more than MEMORY_BYTES, counts as refused.

    Raises:
        UnusableFile: a schema cannot be read.
    """
    # Made before any child is forked, so that all share it.
    _ = tokenizer.llguidance, tokenizer.fingerprint
    run = _Run(tokenizer, len(schema_files(folder)), progress)
    for works in (run.works(read_schemastore(folder)), run.checks(folder)):
        run.start()
        for index, judged in in_children(works, Judged, DEADLINE_S, at_once or os.cpu_count() or 1, MEMORY_BYTES):
            run.add(index, Judged.refusal(judged) if isinstance(judged, GrammarError) else judged)
    return Findings(tuple(run.judgements), run.apart)


class _Run:
    """Hands out works, one for each schema and way, and collects what comes of them."""

    def __init__(self, tokenizer: GrammarTokenizer, total: int, progress: Progress | None) -> None:
        compiles: tuple[Compile, ...] = (
            chosen(tokenizer, closed=False, formats=True),
            bare_xgrammar(tokenizer),
            bare_llguidance(tokenizer),
        )
        self.judgements: list[Judgement] = []
        self.apart: dict[str, Apart] = {}
        self._compiles = dict(zip(GRAMMARS, compiles, strict=True))
        self._tokenizer = tokenizer
        self._total = total
        self._done = 0
        self._progress = progress
        self._given: list[tuple[Judgement, str]] = []

    def start(self) -> None:
        """Works are numbered from here."""
        self._given = []

    def works(self, collected: Iterator[Collected]) -> Iterator[Callable[[], Judged]]:
        for schema in collected:
            if schema.apart is None:
                yield from self._works_of(schema)
            else:
                self.apart[schema.name] = schema.apart
                self._tell()

    def _works_of(self, schema: Collected) -> Iterator[Callable[[], Judged]]:
        judgement = Judgement(schema.name, schema.cases, schema.unread)
        self.judgements.append(judgement)
        for way in GRAMMARS:
            self._given.append((judgement, way))
            yield partial(judged_by_grammar, schema, self._compiles[way], self._tokenizer)
        self._given.append((judgement, VALIDATOR))
        yield partial(judged_by_validator, schema)

    def checks(self, folder: Path) -> Iterator[Callable[[], Judged]]:
        """For the schemas that masks alone do not serve: known when all other works have ended."""
        for judgement in self.judgements:
            if judgement.is_refused:
                self._given.append((judgement, CHECKED))
                yield partial(judged_with_check, read_schema(folder, judgement.name), self._tokenizer)

    def add(self, index: int, judged: Judged) -> None:
        judgement, way = self._given[index]
        judgement.by_way[way] = judged
        if judgement.is_whole:
            self._tell()

    def _tell(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)
