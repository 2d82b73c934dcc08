"""What travels of a grammar: an automaton over bytes, and the tokens that may come in each state in which a token can end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from grammar_service.automata.byte_dfa import ByteDfa
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.backends.language import language_of
from grammar_service.backends.protocol import CompiledPayload
from grammar_service.errors import ArtifactError, GrammarTooLarge, UnsupportedGrammar
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MOST_EFFORT = 500_000
"""Steps for a regex: half a second."""
MOST_EDGES = 12_000_000
"""Tokens in all states together: a second or two, after which a library has to be in time as well."""
MOST_ROW_BYTES = 32 << 20
"""Of all different rows."""
_WORD_BYTES = 8
"""Of a word of a row, and where it stands."""
_AT_ONCE = 16
"""States whose tokens are read together: a wide one has all of the vocabulary."""
Ints = npt.NDArray[np.int32]
Packed = tuple[Ints, Ints]
"""The places of words that are not 0, and the words."""


class _Payload(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Arrays as little-endian bytes, in the order of StateRows."""

    classes: bytes
    moves: bytes
    accepting: bytes
    row_of: bytes
    row_starts: bytes
    words: bytes
    bits: bytes


_PAYLOAD = msgspec.msgpack.Decoder(_Payload)


@dataclass(frozen=True, eq=False)
class StateRows:
    """`classes` uint8 [256]: of bytes that lead to the same; `moves` int32 [states, classes], -1 where no text goes on; `accepting` bool
    [states]; `row_of` int32 [states]: the row, -1 where no token ends. Row r has the words `words[s:e]` (int32, their places in a bitmask
    row) with `bits[s:e]` (int32), all others are 0; s, e = `row_starts[r:r + 2]`."""

    classes: npt.NDArray[np.uint8]
    moves: Ints
    accepting: npt.NDArray[np.bool_]
    row_of: Ints
    row_starts: Ints
    words: Ints
    bits: Ints

    @classmethod
    def of(cls, language: ByteDfa, trie: TokenTrie) -> StateRows:
        """Raises GrammarTooLarge; UnsupportedGrammar: the vocabulary lacks tokens for some of its texts."""
        row_of, rows = _Rows(language, trie).made()
        row_starts = np.cumsum([0, *(len(words) for words, _ in rows)]).astype(np.int32)
        columns, classes = np.unique(language.moves, axis=1, return_inverse=True)
        words, bits = (np.concatenate([row[side] for row in rows]) for side in (0, 1))
        return cls(classes.astype(np.uint8).reshape(-1), columns, language.accepting, row_of, row_starts, words, bits)

    def fits(self, vocab_size: int) -> bool:
        """Whether all of it leads to what is there: who compiled it may have been hijacked, and an engine walks it."""
        states, rows, width = len(self.accepting), len(self.row_starts) - 1, (vocab_size + 31) // 32
        starts = self.row_starts
        return (
            len(self.classes) == 256
            and len(self.row_of) == states > 0
            and len(self.words) == len(self.bits)
            and _within(self.classes, 0, self.moves.shape[1])
            and _within(self.moves, -1, states)
            and _within(self.row_of, -1, rows)
            and _within(self.words, 0, width)
            and _within(starts, 0, len(self.words) + 1)
            and bool((starts[:-1] <= starts[1:]).all())
        )

    def payload(self) -> bytes:
        arrays = (self.classes, self.moves, self.accepting, self.row_of, self.row_starts, self.words, self.bits)
        return msgspec.msgpack.encode(_Payload(*(np.ascontiguousarray(array).tobytes() for array in arrays)))

    @classmethod
    def read(cls, payload: bytes | memoryview) -> StateRows:
        """Raises ArtifactError: none of ours."""
        try:
            held = _PAYLOAD.decode(payload)
            accepting = np.frombuffer(held.accepting, np.bool_)
            moves = np.frombuffer(held.moves, "<i4").reshape(len(accepting), -1)
            rest = (np.frombuffer(data, "<i4") for data in (held.row_of, held.row_starts, held.words, held.bits))
            return cls(np.frombuffer(held.classes, np.uint8), moves, accepting, *rest)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            raise ArtifactError(f"the automaton cannot be read: {error}") from None


def _within(values: npt.NDArray[Any], least: int, end: int) -> bool:
    return not values.size or bool(least <= values.min() and values.max() < end)


def compiled(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> CompiledPayload | None:
    """The payload of a regex or a choice, None where there is none within bounds. Raises InvalidGrammar: nothing matches the regex."""
    began = time.thread_time()
    try:
        if (language := language_of(spec, MOST_EFFORT)) is None:
            return None
        data = StateRows.of(language, tokenizer.trie).payload()
    except (GrammarTooLarge, UnsupportedGrammar):
        return None
    made = time.thread_time()
    StateRows.read(data)
    return CompiledPayload(data, (made - began) * 1000, (time.thread_time() - made) * 1000)


class _Rows:
    """Finds rows state by state; what leads where is not kept."""

    def __init__(self, language: ByteDfa, trie: TokenTrie) -> None:
        self._language = language
        self._trie = trie
        self._numbers: dict[tuple[bytes, bytes], int] = {}
        self._rows: list[Packed] = []
        self._edges = self._words = 0

    def made(self) -> tuple[Ints, list[Packed]]:
        """The number of each state's row, and the rows."""
        self._check_bytes()
        row_of = np.full(len(self._language), -1, np.int32)
        met = np.zeros(len(self._language), bool)
        met[0] = True
        waiting, width = [0], (self._trie.size + 31) // 32
        while waiting:
            states, waiting = np.array(waiting[:_AT_ONCE]), waiting[_AT_ONCE:]
            origins, tokens, targets = self._trie.met(lambda state, byte: self._language.moves[state, byte].astype(np.int64), states)
            self._bound(len(tokens))
            allowed = np.zeros((len(states), width * 32), bool)
            allowed[origins, tokens] = True
            packed: Ints = np.packbits(allowed, axis=1, bitorder="little").view("<i4")
            row_of[states] = [self._number(row) for row in packed]
            behind = np.zeros(len(met), bool)
            behind[targets] = True
            waiting += np.flatnonzero(behind & ~met).tolist()
            met |= behind
        return row_of, self._rows

    def _check_bytes(self) -> None:
        """Where each byte is a token, no state is a dead end."""
        _, _, alone = self._trie.met(lambda state, byte: np.where(state == 0, byte + 1, -1), np.zeros(1, np.int64))
        if not set(np.flatnonzero((self._language.moves >= 0).any(axis=0)).tolist()) <= set((alone - 1).tolist()):
            raise UnsupportedGrammar("the vocabulary lacks tokens for some texts of this grammar")

    def _number(self, row: Ints) -> int:
        words = np.flatnonzero(row).astype(np.int32)
        bits = row[words]
        number = self._numbers.setdefault((words.tobytes(), bits.tobytes()), len(self._rows))
        if number == len(self._rows):
            self._rows.append((words, bits))
            self._words += len(words)
            if self._words * _WORD_BYTES > MOST_ROW_BYTES:
                raise GrammarTooLarge(f"the rows of this grammar take more than {MOST_ROW_BYTES >> 20} MiB")
        return number

    def _bound(self, more: int) -> None:
        self._edges += more
        if self._edges > MOST_EDGES:
            raise GrammarTooLarge(f"the token index of this grammar has more than {MOST_EDGES} edges")
