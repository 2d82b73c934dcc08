"""The automaton that accepts exactly the sequences that a tokenizer makes of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from grammar_service.automata.token_trie import TokenTrie
from grammar_service.canonical.fallback_moves import FallbackMoves
from grammar_service.canonical.merges import derive
from grammar_service.canonical.normal_form.nfc_classes import NfcClasses
from grammar_service.canonical.normal_form.nfc_moves import NfcMoves
from grammar_service.canonical.packed_rows import PackedRows, Row, bits_of, packed
from grammar_service.canonical.pairs import PairTable
from grammar_service.canonical.piece_moves import DEAD, PieceMoves
from grammar_service.canonical.pretokenizers.boundaries import Boundaries
from grammar_service.canonical.pretokenizers.character_classes import CharacterClasses
from grammar_service.canonical.pretokenizers.pattern import classes_of, parse_pattern
from grammar_service.canonical.pretokenizers.scanner import Scanner
from grammar_service.canonical.pretokenizers.utf8_classes import Utf8Classes
from grammar_service.canonical.spellings import Spellings
from grammar_service.canonical.tokenizer_rules import TokenizerRules, rules_of
from grammar_service.errors import UnsupportedGrammar

ROWS_BYTES = 32 << 20
"""2,000 rows of a vocabulary of 131,072."""
KNOWN = 1 << 14
"""Moves that are remembered, about 5 MB of them."""


class State(NamedTuple):
    """`guesses` about boundaries of the text so far, see `PieceMoves`; the last token, -1 at a boundary that is certain; how much of an
    added token's spelling ends the text; what of it decides which characters may come, where the tokenizer does not take them all as
    they are (`NfcMoves`, `FallbackMoves`)."""

    guesses: frozenset[int]
    last: int
    spelling: int
    form: int = 0


class CanonicalAutomaton:
    """Of one tokenizer, for a text that begins at a boundary. States are values: nothing is kept for them. `trie`: of the tokens that stand
    for text; `digest`: a name for merges and all else that the vocabulary does not tell."""

    start = State(frozenset([0]), -1, 0)

    def __init__(self, rules: TokenizerRules, vocabulary: Sequence[bytes], rows_bytes: int = ROWS_BYTES) -> None:
        """`vocabulary`: the bytes of each token by id, b"" for those without text. Raises UnsupportedGrammar: as `rules_of`."""
        derivations = derive(rules.spelled, rules.merges)
        text = [token if rules.spelled[number] else b"" for number, token in enumerate(vocabulary)]
        if rules.whole_first and any(text[number] for number in np.flatnonzero(~derivations.made)):
            raise UnsupportedGrammar("this tokenizer's canonical output is not known: it has tokens that merges do not make")
        self._pairs = PairTable(derivations, rules.merges)
        self.trie = TokenTrie(text)
        branches = parse_pattern(rules.pattern)
        classes = CharacterClasses(classes_of(branches), rules.digits)
        boundaries = Boundaries.of(Scanner(branches, classes), classes)
        self._moves = PieceMoves(boundaries, Utf8Classes.of(classes.number_of), text, self.trie, derivations.made)
        self._spellings = Spellings(rules.added, text, self.trie)
        self._form = _form(rules, text, self.trie)
        self._rows = PackedRows(rows_bytes)
        self._known_after = lru_cache(KNOWN)(self._after)
        self._vocab_size = len(text)
        self.digest = _digest(rules)

    @classmethod
    def of(cls, written: str, vocabulary: Sequence[bytes], rows_bytes: int = ROWS_BYTES) -> CanonicalAutomaton:
        """`written`: the tokenizer as `tokenizers` writes it; takes seconds for a large vocabulary. Raises UnsupportedGrammar: its
        canonical output is not known; it says why."""
        return cls(rules_of(written, len(vocabulary)), vocabulary, rows_bytes)

    @property
    def size_bytes(self) -> int:
        """Of the tables, rows not counted."""
        return self._pairs.size_bytes + self._moves.size_bytes + (self._form.size_bytes if self._form else 0)

    @property
    def pairs(self) -> PairTable:
        return self._pairs

    def may_end(self, state: State) -> bool:
        """Whether the sequence so far is that of a whole text."""
        return any(self._moves.may_end(guess) for guess in state.guesses)

    def after(self, state: State, token: int) -> State | None:
        """The state behind a token; None where no text has this sequence. Ids without text never have one."""
        return self._known_after(state, token)

    def _after(self, state: State, token: int) -> State | None:
        if token in self._spellings.tokens:
            return self.start if self.may_end(state) else None
        spelling = self._spellings.after(state.spelling, token)
        form = self._form.after(state.form, token) if self._form else 0
        if spelling < 0 or form < 0:
            return None
        found = {self._moves.after(guess, token, boundary=True) for guess in state.guesses}
        inside = {self._moves.after(guess, token, boundary=False) for guess in state.guesses} - {DEAD}
        if inside and state.last >= 0 and self._pairs.may_follow(state.last, token):
            found |= inside
        found.discard(DEAD)
        return State(frozenset(found), token, spelling, form) if found else None

    def row(self, state: State, stops: frozenset[int] = frozenset()) -> Row:
        """The tokens that may come, `stops` where the sequence may end; not to be written to. Other special tokens are never among them."""
        return self._rows.get((state, stops), lambda: self._row(state, stops))

    def accepts(self, sequence: Sequence[int]) -> bool:
        """Whether the tokenizer makes this sequence of its text."""
        state = self.start
        for token in sequence:
            after = self.after(state, token)
            if after is None:
                return False
            state = after
        return self.may_end(state)

    def _row(self, state: State, stops: frozenset[int]) -> Row:
        row = self._targets(state.guesses, boundary=True).copy()
        if state.last >= 0:
            row |= self._targets(state.guesses, boundary=False) & self._rows.get(state.last, lambda: self._followers(state.last))
        if self._spellings.tokens:
            row &= self._rows.get(("spelling", state.spelling), lambda: packed(self._spellings.allowed(state.spelling)))
        if (form := self._form) is not None:
            row &= self._rows.get(("form", state.form), lambda: packed(form.allowed(state.form)))
        if self.may_end(state):
            for word, bit in bits_of((*self._spellings.tokens, *stops)):
                row[word] |= bit
        return row

    def _targets(self, guesses: frozenset[int], boundary: bool) -> Row:
        """The tokens that some guess goes on by."""

        def made() -> Row:
            found = np.zeros(self._vocab_size, bool)
            for guess in guesses:
                found |= self._moves.targets(guess, boundary) != DEAD
            return packed(found)

        return self._rows.get((guesses, boundary), made)

    def _followers(self, token: int) -> Row:
        found = np.ones(self._vocab_size, bool)
        found[self._pairs.forbidden(token)] = False
        return packed(found)


def _form(rules: TokenizerRules, text: Sequence[bytes], trie: TokenTrie) -> NfcMoves | FallbackMoves | None:
    if rules.nfc:
        return NfcMoves(NfcClasses.of_engine(), text, trie)
    return FallbackMoves(rules.fallback, len(text)) if rules.fallback else None


def _digest(rules: TokenizerRules) -> str:
    """A name for what the vocabulary does not tell."""
    told = (rules.pattern, rules.digits, sorted(rules.added.items()), rules.whole_first, rules.nfc, rules.fallback is not None)
    digest = hashlib.blake2b(repr(told).encode(), digest_size=16)
    for column in (rules.merges.left, rules.merges.right, rules.merges.whole, rules.merges.rank):
        digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()
