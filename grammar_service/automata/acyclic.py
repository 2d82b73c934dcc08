"""Finite sets of sequences as the smallest automaton that has no circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Row = dict[int, int]
"""Symbol → next state."""


def shared_suffixes(sequences: Iterable[Sequence[int]]) -> tuple[list[Row], list[bool]]:
    """The moves of each state and whether it accepts, from state 0 on, for exactly these sequences of numbers: a trie in which equal
    ends are one."""
    rows, accepting = _trie(sequences)
    names: dict[tuple[bool, tuple[tuple[int, int], ...]], int] = {}
    blocks = [0] * len(rows)
    for node in reversed(range(len(rows))):  # what follows a node was made after it
        moves = tuple(sorted((symbol, blocks[target]) for symbol, target in rows[node].items()))
        blocks[node] = names.setdefault((accepting[node], moves), len(names))
    states = list(names)
    order = _met_from(blocks[0], [dict(moves) for _, moves in states])
    numbers = {block: number for number, block in enumerate(order)}
    moved = [{symbol: numbers[target] for symbol, target in states[block][1]} for block in order]
    return moved, [states[block][0] for block in order]


def _trie(sequences: Iterable[Sequence[int]]) -> tuple[list[Row], list[bool]]:
    rows: list[Row] = [{}]
    accepting = [False]
    for sequence in sequences:
        node = 0
        for symbol in sequence:
            if symbol not in rows[node]:
                rows[node][symbol] = len(rows)
                rows.append({})
                accepting.append(False)
            node = rows[node][symbol]
        accepting[node] = True
    return rows, accepting


def _met_from(start: int, rows: Sequence[Row]) -> list[int]:
    found = dict.fromkeys([start])
    waiting = [start]
    while waiting:
        new = [target for target in rows[waiting.pop()].values() if target not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return list(found)
