"""A whole folder through every way to compile its schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from grammar_service.conformance.acceptors import Compile, bare_llguidance, bare_xgrammar, chosen
from grammar_service.conformance.isolation import in_child
from grammar_service.conformance.report import ConformanceReport, Row
from grammar_service.conformance.suite import Group, read_suite
from grammar_service.conformance.verdict import Deviation, Outcome, Reason, Tally, outcome_of
from grammar_service.conformance.walk import Walked, walk_group
from grammar_service.errors import CompileFailed, CompileTimeout
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

OPEN, CLOSED, ANY_ORDER = "maskcast", "maskcast, closed", "maskcast, any order"
XGRAMMAR, LLGUIDANCE = "xgrammar alone", "llguidance alone"
DEADLINE_S = 20.0

Progress = Callable[[int, int], None]
"""Called with how many groups are done, and how many there are."""


def run_conformance(
    folder: Path, tokenizer: GrammarTokenizer, progress: Progress | None = None, draft: str | None = None, formats: bool = False
) -> ConformanceReport:
    """Walk every case of a folder, or of a draft's folder in it (see `suite.read_suite`), through the backend that the service chooses,
    with schemas as JSON Schema means them, closed, and with members in any order, and through each library alone.

    `formats`: `format` is an assertion, as in the service; else an annotation, as the standard has it by default and the suite means it,
    but for what stands in its `optional/format`. Valid instances that are rejected for a format are counted as over-constrained, with
    the reason FORMAT. Each schema is compiled in a process of its own;
    one that takes over DEADLINE_S, or that crashes the compiler, counts as refused.

    Raises:
        UnusableFile: the folder cannot be read, or there is no such draft.
    """
    groups = read_suite(folder, draft)
    run = _Run(tokenizer, formats)
    for index, group in enumerate(groups):
        run.add(group)
        if progress is not None:
            progress(index + 1, len(groups))
    return run.report()


class _Run:
    """Collects outcomes group by group."""

    def __init__(self, tokenizer: GrammarTokenizer, formats: bool) -> None:
        # Made before any child is forked, so that all share it.
        _ = tokenizer.llguidance, tokenizer.fingerprint
        self._tokenizer = tokenizer
        self._ways: dict[str, Compile] = {
            OPEN: chosen(tokenizer, False, formats),
            CLOSED: chosen(tokenizer, True, formats),
            ANY_ORDER: chosen(tokenizer, False, formats, any_order=True),
            XGRAMMAR: bare_xgrammar(tokenizer),
            LLGUIDANCE: bare_llguidance(tokenizer),
        }
        self._totals = {name: Tally() for name in self._ways}
        self._tallies: dict[str, Tally] = {}
        self._schemas: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._deviations: list[Deviation] = []

    def add(self, group: Group) -> None:
        for name, compile_schema in self._ways.items():
            walked = self._walked(group, compile_schema, name == OPEN)
            tally = _tally(group, walked)
            self._totals[name].add_all(tally)
            if name == OPEN:
                self._record(group, walked, tally)

    def report(self) -> ConformanceReport:
        rows = tuple(Row(word, tally, self._schemas[word], self._refused[word]) for word, tally in self._tallies.items())
        return ConformanceReport(rows, tuple(self._deviations), self._totals, tuple(self._refusals.most_common()))

    def _walked(self, group: Group, compile_schema: Compile, explain: bool) -> Walked:
        try:
            return in_child(partial(walk_group, group, compile_schema, self._tokenizer, explain), Walked, DEADLINE_S)
        except (CompileTimeout, CompileFailed) as error:
            return Walked(refused=error.message)

    def _record(self, group: Group, walked: Walked, tally: Tally) -> None:
        self._schemas[group.keyword] += 1
        self._tallies.setdefault(group.keyword, Tally()).add_all(tally)
        if walked.refused is not None:
            self._refused[group.keyword] += 1
            self._refusals[walked.refused] += 1
            return
        for case, accepted, reason in zip(group.cases, walked.accepted, walked.reasons, strict=True):
            if (outcome := outcome_of(case.valid, accepted)) is not Outcome.CORRECT:
                why = Reason(reason) if reason else None
                self._deviations.append(Deviation(group.keyword, group.description, case.description, outcome, why))


def _tally(group: Group, walked: Walked) -> Tally:
    tally = Tally()
    for index, case in enumerate(group.cases):
        tally.add(Outcome.REFUSED if walked.refused is not None else outcome_of(case.valid, walked.accepted[index]))
    return tally
