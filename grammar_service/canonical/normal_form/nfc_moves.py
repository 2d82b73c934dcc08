"""What each token does to a text that is to be in NFC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from grammar_service.automata.token_trie import Ints, TokenTrie
from grammar_service.canonical.normal_form.nfc_classes import NfcClasses
from grammar_service.canonical.pretokenizers.utf8_classes import Utf8Classes


class NfcMoves:
    """A state is a number. Between characters it says what composes with the last starter, and the combining class of the mark that ends
    the text, 0 at the start: nothing, and no mark. Inside of a character it also has the place there."""

    def __init__(self, classes: NfcClasses, vocabulary: Sequence[bytes], trie: TokenTrie) -> None:
        """`trie`: of the same tokens."""
        self._utf8 = Utf8Classes.of(classes.number_of)
        self._vocabulary = vocabulary
        self._trie = trie
        self._ranks = int(classes.rank.max()) + 1
        self._rank = classes.rank
        self._fresh = classes.wants * self._ranks
        self._may_come = _may_come(classes, self._ranks)
        self._count = len(self._may_come)
        """Of states between characters."""
        self._goes_on = self._may_come.astype(np.float32) @ self._utf8.open.T.astype(np.float32) > 0
        self._from_start = self._walked(trie, 0)
        steady: npt.NDArray[np.bool_] = np.logical_and.reduce(self._may_come)
        self._leaning = [token for token, text in enumerate(vocabulary) if self._leans(text, steady)]
        self._leaning_trie = TokenTrie([vocabulary[token] for token in self._leaning])
        self._is_leaning = frozenset(self._leaning)

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (self._may_come, self._goes_on, self._from_start))

    def after(self, state: int, token: int) -> int:
        """-1: no text in NFC goes on so."""
        if state == 0 or (state < self._count and token not in self._is_leaning):
            return int(self._from_start[token])
        states = np.array([state])
        for byte in self._vocabulary[token]:
            states = self._step(states, np.array([byte]))
            if states[0] < 0:
                break
        return int(states[0])

    def allowed(self, state: int) -> npt.NDArray[np.bool_]:
        """bool [V]: the tokens by which a text in NFC goes on."""
        if state >= self._count:
            return self._walked(self._trie, state) >= 0
        found = self._from_start >= 0
        found[self._leaning] = self._walked(self._leaning_trie, state) >= 0
        return found

    def _leans(self, text: bytes, steady: npt.NDArray[np.bool_]) -> bool:
        """Whether what came before decides about a token: not where it begins with a character of the `steady` classes, that may always
        come."""
        place = 0
        for byte in text:
            number = int(self._utf8.ended[place, byte])
            place = int(self._utf8.step[place, byte])
            if place <= 0:
                return place == 0 and not steady[number]
        return bool(text)

    def _walked(self, trie: TokenTrie, state: int) -> Ints:
        """The states behind all tokens of a trie."""
        _, tokens, states = trie.walk(self._step, np.array([state]))
        found = np.full(trie.size, -1, np.int64)
        found[tokens] = states
        return found

    def _step(self, states: Ints, symbols: Ints) -> Ints:
        place, before = np.divmod(states, self._count)
        behind = self._utf8.step[place, symbols].astype(np.int64)
        number = self._utf8.ended[place, symbols]
        marked = before - before % self._ranks + self._rank[number]
        ended = np.where(self._may_come[before, number], np.where(self._rank[number] > 0, marked, self._fresh[number]), -1)
        inside = np.where(self._goes_on[before, np.maximum(behind, 0)], behind * self._count + before, -1)
        return np.where(behind > 0, inside, np.where(behind == 0, ended, -1))


def _may_come(classes: NfcClasses, ranks: int) -> npt.NDArray[np.bool_]:
    """[states between characters, classes]."""
    last = np.arange(ranks)[:, None]
    ordered = (classes.rank == 0) | (last <= classes.rank)
    unblocked = (last == 0) | (last < classes.rank)
    table: npt.NDArray[np.bool_] = ordered[None] & ~(unblocked[None] & classes.composes[:, None, :]) & ~classes.changes
    return table.reshape(-1, len(classes.rank))
