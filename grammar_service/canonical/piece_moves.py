"""What each token does to each guess about boundaries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from grammar_service.automata.token_trie import Ints, TokenTrie
from grammar_service.canonical.pretokenizers.boundaries import Boundaries
from grammar_service.canonical.pretokenizers.utf8_classes import Utf8Classes

DEAD = 0
"""No guess: nothing leads to the start."""


class PieceMoves:
    """A guess is a number: between characters the configuration, 0 at the start; inside of one also the place in it, and whether a boundary
    was before it. `made`: the tokens (bool [V]) that ever come."""

    def __init__(
        self, boundaries: Boundaries, utf8: Utf8Classes, vocabulary: Sequence[bytes], trie: TokenTrie, made: npt.NDArray[np.bool_]
    ) -> None:
        self._boundaries = boundaries
        self._utf8 = utf8
        self._vocabulary = vocabulary
        self._trie = trie
        self._made = made
        self._count = len(boundaries)
        ways = boundaries.ways.reshape(2 * self._count, -1)
        self._ways = ways
        """Of sources: configurations without a boundary before the next character, then with one."""
        self._goes_on = (ways > 0).astype(np.float32) @ utf8.open.T.astype(np.float32) > 0
        self._table = self._tables()

    @property
    def size_bytes(self) -> int:
        return int(self._table.nbytes)

    @property
    def configurations(self) -> int:
        return self._count

    def is_between(self, guess: int) -> bool:
        """Between characters, where a boundary may be."""
        return guess < self._count

    def may_end(self, guess: int) -> bool:
        return guess < self._count and bool(self._boundaries.final[guess])

    def after(self, guess: int, token: int, boundary: bool) -> int:
        """The guess behind a token, DEAD where none is right; `boundary`: one stands before the token."""
        if guess < self._count:
            return int(self._table[int(boundary), guess, token])
        return DEAD if boundary or not self._made[token] else self._read(guess, self._vocabulary[token])

    def targets(self, guess: int, boundary: bool) -> npt.NDArray[np.integer]:
        """`after` for all tokens, [V]."""
        if guess < self._count:
            found: npt.NDArray[np.integer] = self._table[int(boundary), guess]
            return found
        return np.zeros(len(self._vocabulary), np.int64) if boundary else self._walked(guess)

    def _tables(self) -> npt.NDArray[np.integer]:
        """[2, configurations, V]."""
        shape = (2, self._count, len(self._vocabulary))
        table = np.zeros(shape, np.min_scalar_type(2 * self._count * len(self._utf8.open)))
        for boundary in (0, 1):
            for configuration in range(self._count):
                table[boundary, configuration] = self._walked(self._guess(boundary * self._count + configuration, 0))
        return table

    def _walked(self, guess: int) -> Ints:
        _, tokens, states = self._trie.met(self._step, np.array([guess]))
        found = np.zeros(len(self._vocabulary), np.int64)
        found[tokens] = states
        found[~self._made] = DEAD
        return found

    def _guess(self, source: int, place: int) -> int:
        return place * 2 * self._count + source

    def _step(self, guesses: Ints, symbols: Ints) -> Ints:
        place, source = np.divmod(guesses, 2 * self._count)
        behind = self._utf8.step[place, symbols].astype(np.int64)
        ended = self._ways[source, self._utf8.ended[place, symbols]]
        inside = np.where(self._goes_on[source, np.maximum(behind, 0)], behind * 2 * self._count + source, -1)
        return np.where(behind > 0, inside, np.where((behind == 0) & (ended > 0), ended, -1))

    def _read(self, guess: int, text: bytes) -> int:
        state = np.array([guess])
        for byte in text:
            state = self._step(state, np.array([byte]))
            if state[0] < 0:
                return DEAD
        return int(state[0])
