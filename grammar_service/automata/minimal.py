"""The smallest automaton over tokens of a language (Moore 1956)."""

from __future__ import annotations

from grammar_service.automata.token_index import TokenIndex

Row = tuple[tuple[int, int], ...]
"""Token and block of the state behind it."""


def minimal(index: TokenIndex) -> TokenIndex:
    """The same sequences, of a trimmed automaton; states keep the order of their first ones. Takes time in edges and the longest way that
    tells two states apart."""
    rows = [[*zip(*(column.tolist() for column in index.row(state)), strict=True)] for state in range(len(index))]
    blocks = index.accepting.astype(int).tolist()
    count = len(set(blocks))
    while True:
        names: dict[tuple[int, Row], int] = {}
        behind = [(block, tuple((token, blocks[target]) for token, target in row)) for block, row in zip(blocks, rows, strict=True)]
        blocks = [names.setdefault(signature, len(names)) for signature in behind]
        if len(names) == count:
            break
        count = len(names)
    first: dict[int, int] = {}
    for state, block in enumerate(blocks):
        first.setdefault(block, state)
    moves = [{token: blocks[target] for token, target in rows[state]} for state in first.values()]
    return TokenIndex.of_moves(moves, [bool(index.accepting[state]) for state in first.values()])
