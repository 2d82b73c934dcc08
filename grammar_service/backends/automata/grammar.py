"""Grammars and matchers of automata, as the protocol has them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import torch

from grammar_service.backends.automata.state_rows import StateRows
from grammar_service.backends.state_matcher import StateMatcher
from grammar_service.canonical.packed_rows import Bits, Row, bits_of
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_WIDE = 8
"""A row with more than this share (1 / 8) of its words is kept whole, once it has been asked for, however many there are."""
_ALL_BYTES = 1 << 20
"""All rows of a grammar are kept whole if they take no more bytes. Copying one takes half as long as writing one, with 131,072 tokens."""
_MOST_FORCED = 4096
"""Bytes that are looked for at a time."""


class AutomataGrammar:
    """Matchers share all of it."""

    def __init__(self, rows: StateRows, tokenizer: GrammarTokenizer) -> None:
        self._stop_ids = tokenizer.stop_token_ids
        self._stop_bits = bits_of(self._stop_ids)
        self._width = (tokenizer.vocab_size + 31) // 32
        self._classes = rows.classes.tobytes()
        self._class_count = rows.moves.shape[1]
        self._moves = array("i", rows.moves.tobytes())
        self._row_of = array("i", rows.row_of.tobytes())
        self._starts = array("i", rows.row_starts.tobytes())
        self._words, self._bits = rows.words.astype(np.intp), rows.bits
        self._vocabulary = tokenizer.vocabulary
        self._only_byte = _only_bytes(rows)
        self.accepting: list[bool] = rows.accepting.tolist()
        self._kinds: list[int] = (2 * rows.row_of + rows.accepting).tolist()
        """Of states, by what may come there: twice the number of the row, and one more where texts end."""
        self._whole: dict[int, Row] = {}
        self._seen: tuple[torch.Tensor, Row] | None = None
        kinds = [kind for kind in set(self._kinds) if kind >= 0]
        self._keeps_all = 4 * self._width * len(kinds) <= _ALL_BYTES
        self._kept = len(kinds) if self._keeps_all else sum(_WIDE * self._words_of(kind >> 1) > self._width for kind in kinds)

    @property
    def size_bytes(self) -> int:
        return 12 * len(self._words) + 8 * len(self._moves) + 24 * len(self.accepting) + 4 * self._width * self._kept

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> AutomataMatcher:
        if stop_token_ids is None or set(stop_token_ids) == set(self._stop_ids):
            return AutomataMatcher(self, self._stop_ids, None)
        return AutomataMatcher(self, stop_token_ids, bits_of(stop_token_ids))

    def after(self, state: int, token: int) -> int | None:
        """The state behind a token, None where there is none."""
        text = self._vocabulary[token] if 0 <= token < len(self._vocabulary) else b""
        if not text:
            return None
        moves, classes, count = self._moves, self._classes, self._class_count
        for byte in text:
            state = moves[state * count + classes[byte]]
            if state < 0:
                return None
        return state

    def masks(self, bitmask: torch.Tensor) -> Row:
        """The tensor as an array; the latest one's is kept, since an engine has one, and a view takes as long as copying a row of 131,072
        tokens."""
        if (seen := self._seen) is None or seen[0] is not bitmask:
            self._seen = seen = (bitmask, bitmask.numpy())
        return seen[1]

    def fill(self, mask: Row, state: int) -> None:
        """The tokens that may come in a state, the tokenizer's own stop tokens among them, to a row of a bitmask."""
        kind = self._kinds[state]
        if (whole := self._whole.get(kind)) is not None:
            mask[:] = whole
            return
        words = self.write(mask, state)
        if self.accepting[state]:
            _allow(mask, self._stop_bits)
        if self._keeps_all or words * _WIDE > self._width:
            self._whole[kind] = mask.copy()

    def _words_of(self, row: int) -> int:
        return self._starts[row + 1] - self._starts[row]

    def write(self, mask: Row, state: int) -> int:
        """The tokens with text that may come in a state; in how many words of the mask they stand."""
        number = self._row_of[state]
        begin, end = self._starts[number], self._starts[number + 1]
        mask[:] = 0
        mask[self._words[begin:end]] = self._bits[begin:end]
        return end - begin

    def forced(self, state: int) -> bytes:
        found = bytearray()
        while len(found) < _MOST_FORCED and (byte := self._only_byte[state]) >= 0:
            found.append(byte)
            state = self._moves[state * self._class_count + self._classes[byte]]
        return bytes(found)


class AutomataMatcher(StateMatcher):
    """A Matcher: a state, and how it was come to."""

    def __init__(self, grammar: AutomataGrammar, stop_token_ids: Sequence[int], stop_bits: Bits | None) -> None:
        """`stop_bits`: where the stop tokens stand in a row, None: they are the tokenizer's own."""
        super().__init__(stop_token_ids)
        self._grammar = grammar
        self._stop_bits = stop_bits

    def _after(self, state: int, token: int) -> int | None:
        return self._grammar.after(state, token)

    def _may_end(self, state: int) -> bool:
        return self._grammar.accepting[state]

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        mask: Row = self._grammar.masks(bitmask)[row]
        if self._has_ended:
            mask[:] = 0
        elif self._stop_bits is None:
            self._grammar.fill(mask, self._state)
        else:
            self._grammar.write(mask, self._state)
            for word, bit in self._stop_bits:  # one that has text is one of the texts' no more
                mask[word] &= ~bit
            if self._may_end(self._state):
                _allow(mask, self._stop_bits)

    def forced_bytes(self) -> bytes:
        return b"" if self._has_ended else self._grammar.forced(self._state)


def _allow(mask: Row, bits: Bits) -> None:
    for word, bit in bits:
        mask[word] |= bit


def _only_bytes(rows: StateRows) -> list[int]:
    """For each state the byte that every text goes on with, -1 where there is a choice, the end included."""
    ways = rows.moves >= 0
    counts = np.bincount(rows.classes, minlength=rows.moves.shape[1])
    single = ((ways * counts).sum(axis=1) == 1) & ~rows.accepting
    byte_of = np.zeros(rows.moves.shape[1], np.int64)
    byte_of[rows.classes] = np.arange(256)
    found: list[int] = np.where(single, byte_of[ways.argmax(axis=1)], -1).tolist()
    return found
