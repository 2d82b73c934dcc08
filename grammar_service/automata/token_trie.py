"""A vocabulary as a trie in arrays, to read all of its tokens at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Step = Callable[[Ints, Ints], Ints]
"""States and the bytes that are read in them → the states behind, -1 where there is none."""


class TokenTrie:
    """`tokens`: the bytes of each token by id; ids without bytes are left out. Several ids may have the same bytes. `size`: how many ids
    there are.

    The nodes of one depth are numbered by their parents, then by their bytes, so that children are a range.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        lengths = np.array([len(token) for token in tokens], np.int64)
        padded = np.zeros((len(tokens), int(lengths.max(initial=0))), np.uint8)
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.frombuffer(b"".join(tokens), np.uint8)
        place = np.zeros(len(tokens), np.int64)
        parents = [np.array([-1], np.int64)]
        symbols = [np.zeros(1, np.int64)]
        count = 1
        for depth in range(padded.shape[1]):
            longer = lengths > depth
            found, index = np.unique(place[longer] << 8 | padded[longer, depth], return_inverse=True)
            place[longer] = count + index
            parents.append(found >> 8)
            symbols.append(found & 0xFF)
            count += len(found)
        self.size = len(tokens)
        self._bytes = np.concatenate(symbols)
        parent = np.concatenate(parents)
        nodes = np.arange(count)
        self._first_child = np.searchsorted(parent, nodes, "left")
        self._children = np.searchsorted(parent, nodes, "right") - self._first_child
        ids = np.flatnonzero(lengths)
        self._ids = ids[np.argsort(place[ids], kind="stable")]
        self._first_id = np.searchsorted(place[self._ids], nodes, "left")
        self._ids_at = np.searchsorted(place[self._ids], nodes, "right") - self._first_id

    def walk(self, step: Step, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """All (index of a start, token, state behind it), sorted."""
        origins, tokens, states = self.met(step, starts)
        order = np.lexsort((tokens, origins))
        return origins[order], tokens[order], states[order]

    def met(self, step: Step, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """The same, shorter tokens first: sorting takes most of the time where there are many."""
        node, state, origin = np.zeros(len(starts), np.int64), starts.astype(np.int64), np.arange(len(starts))
        found: list[tuple[Ints, Ints, Ints]] = []
        while len(node):
            index, node = _ranges(self._first_child[node], self._children[node])
            state, origin = step(state[index], self._bytes[node]), origin[index]
            live = state >= 0
            node, state, origin = node[live], state[live], origin[live]
            index, place = _ranges(self._first_id[node], self._ids_at[node])
            found.append((origin[index], self._ids[place], state[index]))
        origins, tokens, states = (np.concatenate(column) for column in zip(*found, strict=True))
        return origins, tokens, states


def _ranges(first: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Ranges of numbers laid end to end, and of each number which range it is of."""
    index = np.repeat(np.arange(len(first)), lengths)
    begins = np.cumsum(lengths) - lengths
    return index, first[index] + np.arange(len(index)) - begins[index]
