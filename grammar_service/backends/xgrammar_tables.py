"""How large a compiled grammar's serialization would be, and how fast such text is read here (xgrammar 0.2.8, format v16).

`serialize_json` writes the one automaton that all rules share, then that same text again for each rule, then the masks.
"""

from __future__ import annotations

import time

import xgrammar
from xgrammar.testing import _print_grammar_fsms

from grammar_service.cost import LoadRate, TableSize

_EDGE, _STATE, _RULE = 12, 5, 150
"""Characters that one of them takes: `[34,34,17],`, `1234,`, and a rule's own part."""
_MASK = 1.6
"""Characters for a byte of memory. Bitsets take up to 2.75, lists of tokens 1.8, what is not a mask nothing."""
_READINGS = 3


def table_size(compiled: xgrammar.CompiledGrammar) -> TableSize:
    """An estimate, for about a hundredth of what serializing takes."""
    listing = _print_grammar_fsms(compiled.grammar)
    rules, _, after = listing.count("CompactFSM(num_states="), *listing.partition("num_states=")[1:]
    states = int(after.partition(",")[0] or 0)
    automaton = _EDGE * listing.count("->") + _STATE * states
    return TableSize((rules + 1) * automaton + _RULE * rules, int(_MASK * compiled.memory_size_bytes))


def measured_rate(compiled: xgrammar.CompiledGrammar, tokenizer: xgrammar.TokenizerInfo) -> LoadRate:
    """Read the tables of one grammar a few times; tens of milliseconds for a small one."""
    text = compiled.serialize_json()
    return LoadRate(min(_read_ms(text, tokenizer) for _ in range(_READINGS)), table_size(compiled).work)


def _read_ms(text: str, tokenizer: xgrammar.TokenizerInfo) -> float:
    started = time.thread_time()
    xgrammar.CompiledGrammar.deserialize_json(text, tokenizer)
    return (time.thread_time() - started) * 1000
