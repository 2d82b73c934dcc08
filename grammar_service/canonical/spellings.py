"""Added tokens: an encoder looks for their spelling before it does anything else, so that no other tokens ever spell one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from grammar_service.automata.token_trie import TokenTrie


class Spellings:
    """Follows how much of a spelling ends the text so far: 0 is none of any. No spelling overlaps with another one, or is part of it."""

    def __init__(self, added: Mapping[bytes, int], vocabulary: Sequence[bytes], trie: TokenTrie) -> None:
        self.tokens: dict[int, bytes] = {token: spelling for spelling, token in added.items()}
        self._vocabulary = vocabulary
        self._trie = trie
        self._moves = _moves([*added])

    def after(self, state: int, token: int) -> int:
        """-1: the token completes a spelling."""
        if len(self._moves) == 1:
            return 0
        for byte in self._vocabulary[token]:
            state = int(self._moves[state, byte])
            if state < 0:
                break
        return state

    def allowed(self, state: int) -> npt.NDArray[np.bool_]:
        """bool [V]: the tokens that do not complete one."""
        _, tokens, _ = self._trie.walk(lambda at, byte: self._moves[at, byte].astype(np.int64), np.array([state]))
        found = np.zeros(len(self._vocabulary), bool)
        found[tokens] = True
        return found


def _moves(spellings: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """int32 [states, 256]: a state is the longest beginning of a spelling that ends the text; -1 where a whole one does."""
    whole = set(spellings)
    beginnings = [b"", *dict.fromkeys(spelling[:length] for spelling in spellings for length in range(1, len(spelling)))]
    numbers = {beginning: number for number, beginning in enumerate(beginnings)}
    moves = np.zeros((len(beginnings), 256), np.int32)
    for beginning, number in numbers.items():
        for byte in range(256):
            text = beginning + bytes([byte])
            endings = [text[at:] for at in range(len(text) + 1)]
            moves[number, byte] = -1 if whole & set(endings) else next(numbers[ending] for ending in endings if ending in numbers)
    return moves
