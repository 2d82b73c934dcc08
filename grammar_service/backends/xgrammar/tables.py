"""How large a compiled grammar's serialization would be (xgrammar 0.2.8, format v16).

`serialize_json` writes the one automaton that all rules share, then that same text again for each rule, then the masks.
"""

from __future__ import annotations

from dataclasses import dataclass

import xgrammar
from xgrammar.testing import _print_grammar_fsms

from grammar_service.backends.xgrammar.cost import TableSize

_EDGE, _STATE, _RULE, _REST = 12, 5, 150, 300
"""Characters that one of them takes: `[34,34,17],`, `1234,`, a rule's own part, and the names of all fields."""
_MASK = 1.6
"""Characters for a byte of memory. Bitsets take up to 2.75, lists of tokens 1.8, what is not a mask nothing."""
_DIGITS = b"0123456789"
_RULE_END = b"\n])"


@dataclass(frozen=True, slots=True)
class Shape:
    """`size` is an estimate. `rules` are the lengths of the distinct rules by digests in which only structure counts: the numbers of
    states and rules do not, so that a rule is the same in all grammars."""

    size: TableSize
    rules: dict[int, int]


def shape_of(compiled: xgrammar.CompiledGrammar) -> Shape:
    """For about a hundredth of what serializing takes."""
    listing = _print_grammar_fsms(compiled.grammar).encode()
    _, *rules = listing.translate(None, _DIGITS).split(b"CompactFSM(")
    states = int(listing.partition(b"num_states=")[2].partition(b",")[0] or 0)
    automaton = _EDGE * listing.count(b"->") + _STATE * states
    automata = (len(rules) + 1) * automaton + _RULE * len(rules) + _REST
    return Shape(TableSize(automata, int(_MASK * compiled.memory_size_bytes)), dict(map(_digest, rules)))


def read_tables(text: str, tokenizer: xgrammar.TokenizerInfo) -> xgrammar.CompiledGrammar:
    """What `serialize_json` wrote; without the interpreter's lock. Raises RuntimeError: as the library does."""
    return xgrammar.CompiledGrammar.deserialize_json(text, tokenizer)


def _digest(rule: bytes) -> tuple[int, int]:
    body = rule.partition(_RULE_END)[0]
    return hash(body), len(body)
