"""What is drawn of an automaton over tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deployments.commands.grammar.automaton import MOST_MINIMISED, Automata
from grammar_service.automata.coalescence import runs, single_states
from grammar_service.automata.minimal import minimal
from grammar_service.automata.token_index import TokenIndex
from grammar_service.errors import GrammarTooLarge

MOST_STATES, MOST_EDGES = 60, 240
"""Of one panel: more cannot be read."""
COMPRESSED = "what is decided, run together"
_MOST_LABELS, _LONGEST = 3, 24
_VISIBLE = str.maketrans({" ": "␣", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


@dataclass(frozen=True, slots=True)
class Edge:
    """All tokens that lead from one state to another, in words."""

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One automaton: its states by number, those that a text may end in, and those with one way on."""

    title: str
    states: Sequence[int]
    accepting: frozenset[int]
    single: frozenset[int]
    edges: Sequence[Edge]


def panels_of(found: Automata, vocabulary: Sequence[bytes]) -> list[Panel]:
    """Of each automaton the smallest one of the same sequences, where that can be read, and the last one compressed. Raises
    GrammarTooLarge: none can."""
    smallest = {name: minimal(index) for name, index in found.indexes.items() if index.edges <= MOST_MINIMISED}
    drawn = [(name, index) for name, index in smallest.items() if len(index) <= MOST_STATES]
    panels = [_of_index(name, index, vocabulary) for name, index in drawn]
    if drawn:
        panels.append(_of_runs(drawn[-1][1], vocabulary))
    readable = [panel for panel in panels if len(panel.edges) <= MOST_EDGES]
    if not readable:
        raise GrammarTooLarge(f"nothing is drawn: more than {MOST_STATES} states, or {MOST_EDGES} pairs of them, cannot be read")
    return readable


def _of_index(name: str, index: TokenIndex, vocabulary: Sequence[bytes]) -> Panel:
    moves = zip(index.sources.tolist(), index.targets.tolist(), index.tokens.tolist(), strict=True)
    edges = _edges((source, target, vocabulary[token]) for source, target, token in moves)
    title = f"{name}: {len(index):,} states, {index.edges:,} edges"
    return Panel(title, range(len(index)), _accepting(index), frozenset(single_states(index)), edges)


def _of_runs(index: TokenIndex, vocabulary: Sequence[bytes]) -> Panel:
    found = runs(index)
    edges = _edges((run.source, run.target, b"".join(vocabulary[token] for token in run.tokens)) for run in found)
    states = sorted({0, *(state for run in found for state in (run.source, run.target))})
    return Panel(f"{COMPRESSED}: {len(states)} states, {len(found)} edges", states, _accepting(index), frozenset(), edges)


def _accepting(index: TokenIndex) -> frozenset[int]:
    return frozenset(index.accepting.nonzero()[0].tolist())


def _edges(moves: Iterable[tuple[int, int, bytes]]) -> list[Edge]:
    texts: Mapping[tuple[int, int], list[str]] = defaultdict(list)
    for source, target, text in moves:
        texts[source, target].append(_shown(text))
    return [Edge(source, target, _label(labels)) for (source, target), labels in sorted(texts.items())]


def _label(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_LABELS
    return "  ".join(texts[:_MOST_LABELS]) + (f"  +{more:,}" if more > 0 else "")


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "backslashreplace").translate(_VISIBLE)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
