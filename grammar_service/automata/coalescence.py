"""What an automaton over tokens decides without a model: states with one way on, run together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grammar_service.automata.token_index import TokenIndex

MAX_PATHS = 100_000
"""Paths whose tokens and calls are told apart."""


@dataclass(frozen=True, slots=True)
class Run:
    """From `source`, `tokens` without a choice between them, to `target`."""

    source: int
    tokens: tuple[int, ...]
    target: int


def single_states(index: TokenIndex) -> list[int]:
    """Those in which nothing is to be chosen: one token may come, and the end may not."""
    return [int(state) for state in np.flatnonzero((np.diff(index.starts) == 1) & ~index.accepting)]


def runs(index: TokenIndex) -> list[Run]:
    """The compressed automaton: from the start and from each state with a choice, each token together with all that must follow it."""
    single = set(single_states(index))
    found: list[Run] = []
    for state in range(len(index)):
        if state in single and state:
            continue
        for token, target in zip(*(column.tolist() for column in index.row(state)), strict=True):
            found.append(_run(index, single, Run(state, (token,), target)))
    return found


def forced_paths(index: TokenIndex) -> list[Run]:
    """What is decided, from each state that it may begin in to the next one with a choice."""
    single = set(single_states(index))
    with_choice = [state for state in range(len(index)) if state not in single]
    begins = {target for state in with_choice for target in index.row(state)[1].tolist()} | {0}
    return [_run(index, single, Run(state, (), state)) for state in sorted(begins & single)]


def _run(index: TokenIndex, single: set[int], begun: Run) -> Run:
    tokens, target = [*begun.tokens], begun.target
    while target in single and len(tokens) <= len(index):
        row, after = index.row(target)
        tokens.append(int(row[0]))
        target = int(after[0])
    return Run(begun.source, tuple(tokens), target)


def tokenizations(index: TokenIndex) -> int | None:
    """How many sequences it accepts; None: endlessly many."""
    order = _order(index)
    if order is None:
        return None
    counts = [0] * len(index)
    for state in reversed(order):
        counts[state] = int(index.accepting[state]) + sum(counts[target] for target in index.row(state)[1].tolist())
    return counts[0]


def model_calls(index: TokenIndex) -> set[tuple[int, int]] | None:
    """Of each accepted sequence, its length and how many of its tokens a model must be asked for, the end not counted; None: there are
    circles, or more than MAX_PATHS ways to tell apart."""
    order = _order(index)
    if order is None:
        return None
    single = set(single_states(index))
    known: list[set[tuple[int, int]]] = [set() for _ in range(len(index))]
    for state in reversed(order):
        asked = int(state not in single and len(index.row(state)[0]) + bool(index.accepting[state]) > 1)
        below = {(length + 1, calls + asked) for target in index.row(state)[1].tolist() for length, calls in known[target]}
        known[state] = below | ({(0, 0)} if index.accepting[state] else set())
        if len(known[state]) > MAX_PATHS:
            return None
    return known[0]


def _order(index: TokenIndex) -> list[int] | None:
    """States before what follows them; None where there are circles."""
    open_sources = np.bincount(index.targets, minlength=len(index))
    waiting = [state for state in range(len(index)) if not open_sources[state]]
    for state in waiting:
        for target in index.row(state)[1].tolist():
            open_sources[target] -= 1
            if not open_sources[target]:
                waiting.append(target)
    return waiting if len(waiting) == len(index) else None
