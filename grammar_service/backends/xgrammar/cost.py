"""What a compiled grammar should travel as: its tables, which cost loading, or its recipe, which costs compiling once more. Pure.

Neither is always cheaper. Typical schemas compile in milliseconds where a compiler is warm, and their tables take longer to read;
for schemas that compile in seconds it is the other way round. Reading is slow because tables are text in which one automaton is
repeated for each rule.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

AUTOMATA_WEIGHT = 4
"""Reading a character of automata takes about as long as reading this many of token lists (xgrammar 0.2.8, 50 grammars)."""
WORK_A_MS = 110_000
"""Characters of token lists that are read in a millisecond: 83,000 to 136,000 in four grammars on 131,072 tokens. On a faster machine
compiling is faster too, so that the comparison holds."""
DEAR_MS = 20.0
"""Milliseconds. Readers compile a grammar, or a rule, that takes less. With 200 ms, the corpus's 46 grammars on xgrammar took 1.65 times as
long to be ready as with the better choice for each, and with 20 ms 1.38 times (`load_tests.grammar`)."""
ESTIMATE_MARGIN = 1.5
"""A table's size, estimated before it is written, may be wrong by this factor."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """Characters of a grammar's expanded tables: `automata` those of its rules, `masks` the tokens allowed in their states."""

    automata: int
    masks: int

    @property
    def total(self) -> int:
        return self.automata + self.masks

    @property
    def work(self) -> int:
        """What reading them costs, in characters of token lists."""
        return AUTOMATA_WEIGHT * self.automata + self.masks


def worth_tables(compile_ms: float, size: TableSize, max_expanded_bytes: int) -> bool:
    """Whether readers should get tables: compiling is dear, reading is cheaper, and their expansion surely is within its bound."""
    reads_sooner = expected_load_ms(size) < compile_ms
    return compile_ms >= DEAR_MS and reads_sooner and size.total * ESTIMATE_MARGIN <= max_expanded_bytes


def expected_load_ms(size: TableSize) -> float:
    """What reading tables of that size takes."""
    return size.work / WORK_A_MS


class RuleCosts:
    """What rules took to compile when they were new, so that a compiler's cache does not make a dear grammar look cheap.

    A reader's compiler lacks the rules that this one has from other grammars. Rules are known by digests; `most` are remembered.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._costs: OrderedDict[int, float] = OrderedDict()

    def cold_ms(self, rules: Mapping[int, int], ms: float) -> float:
        """What a grammar that took `ms` here is expected to take where its dear rules are new. `rules` are their lengths by digest.

        Its new rules are remembered at shares of `ms`: by the square of their lengths, since the time goes into the longest.
        """
        known = [self._costs[rule] for rule in rules if rule in self._costs]
        new = {rule: length**2 for rule, length in rules.items() if rule not in self._costs}
        whole = sum(new.values())
        for rule, weight in new.items():
            self._costs[rule] = ms * weight / max(whole, 1)
        while len(self._costs) > self._most:
            self._costs.popitem(last=False)
        return max(ms + sum(cost for cost in known if cost >= DEAR_MS), sum(known))
