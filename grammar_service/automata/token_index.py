"""Automata over tokens, and the one of a language of texts: from each state, the tokens that may come (Willard & Louf 2023, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from grammar_service.automata.byte_dfa import ByteDfa
from grammar_service.automata.token_trie import Ints, TokenTrie
from grammar_service.errors import GrammarTooLarge

MAX_EDGES = 8_000_000
"""Of one index: 64 MB."""
_AT_ONCE = 16
"""States whose tokens are read together: a wide one has all of the vocabulary."""


@dataclass(frozen=True, eq=False)
class TokenIndex:
    """A deterministic automaton over token ids, start 0. The edges of state s are those from `starts[s]` (int64 [states + 1]) on, sorted
    by token: `tokens` and `targets`, int32 each; `accepting` bool [states]."""

    starts: Ints
    tokens: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.bool_]

    @classmethod
    def of_language(cls, language: ByteDfa, trie: TokenTrie, max_edges: int = MAX_EDGES) -> TokenIndex:
        """Every token sequence whose text is in the language. Raises GrammarTooLarge: more than `max_edges`."""
        numbers = np.full(len(language), -1, np.int64)
        numbers[0] = 0
        order = [0]
        rows: list[tuple[Ints, Ints]] = []
        edges = 0
        while len(rows) < len(order):
            states = np.array(order[len(rows) : len(rows) + _AT_ONCE])
            origins, tokens, targets = trie.walk(lambda state, byte: language.moves[state, byte].astype(np.int64), states)
            edges += len(tokens)
            if edges > max_edges:
                raise GrammarTooLarge(f"the token index of this grammar has more than {max_edges} edges")
            new = np.unique(targets[numbers[targets] < 0])
            numbers[new] = len(order) + np.arange(len(new))
            order += new.tolist()
            cuts = np.searchsorted(origins, np.arange(len(states) + 1))
            rows += [(tokens[low:high], numbers[targets[low:high]]) for low, high in pairwise(cuts.tolist())]
        return cls.of_rows(rows, language.accepting[order]).trimmed()

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Ints, Ints]], accepting: npt.NDArray[np.bool_]) -> TokenIndex:
        """`rows`: tokens, sorted, and targets of each state."""
        starts = np.concatenate([[0], np.cumsum([len(tokens) for tokens, _ in rows], dtype=np.int64)])
        tokens, targets = (np.concatenate([row[side] for row in rows]).astype(np.int32) for side in (0, 1))
        return cls(starts, tokens, targets, np.asarray(accepting, bool))

    @classmethod
    def of_moves(cls, moves: Sequence[Mapping[int, int]], accepting: Sequence[bool]) -> TokenIndex:
        """`moves`: token → target, of each state."""
        rows = [np.array(sorted(row.items()), np.int64).reshape(-1, 2) for row in moves]
        return cls.of_rows([(row[:, 0], row[:, 1]) for row in rows], np.array(accepting, bool))

    def __len__(self) -> int:
        return len(self.accepting)

    @property
    def edges(self) -> int:
        return len(self.tokens)

    def row(self, state: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The tokens that may come, sorted, and the states behind them."""
        span = slice(self.starts[state], self.starts[state + 1])
        return self.tokens[span], self.targets[span]

    def after(self, state: int, token: int) -> int | None:
        tokens, targets = self.row(state)
        at = int(np.searchsorted(tokens, token))
        return int(targets[at]) if at < len(tokens) and tokens[at] == token else None

    def __contains__(self, sequence: Sequence[int]) -> bool:
        state = 0
        for token in sequence:
            after = self.after(state, token)
            if after is None:
                return False
            state = after
        return bool(self.accepting[state])

    @cached_property
    def sources(self) -> npt.NDArray[np.int32]:
        """The state that each edge leaves."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))

    def trimmed(self) -> TokenIndex:
        """Without states that no accepting one is reached from, or that are not reached; states keep their order."""
        kept = self._reached() & self._reaching()
        kept[0] = True
        if kept.all():
            return self
        numbers = np.cumsum(kept, dtype=np.int32) - 1
        edges = kept[self.sources] & kept[self.targets]
        counts = np.bincount(numbers[self.sources[edges]], minlength=int(kept.sum()))
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        return TokenIndex(starts, self.tokens[edges], numbers[self.targets[edges]], self.accepting[kept])

    def _reached(self) -> npt.NDArray[np.bool_]:
        start = np.zeros(len(self), bool)
        start[0] = True
        return _spread(start, self.sources, self.targets)

    def _reaching(self) -> npt.NDArray[np.bool_]:
        return _spread(self.accepting.copy(), self.targets, self.sources)


def _spread(marked: npt.NDArray[np.bool_], sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Marks what is reached from the marked states along edges from `sources` to `targets`."""
    order = np.argsort(sources, kind="stable")
    ends = targets[order]
    starts = np.searchsorted(sources[order], np.arange(len(marked) + 1))
    new: npt.NDArray[np.integer] = np.flatnonzero(marked)
    while len(new):
        spans = [ends[starts[state] : starts[state + 1]] for state in new.tolist()]
        met = np.unique(np.concatenate(spans)) if spans else new[:0]
        new = met[~marked[met]]
        marked[new] = True
    return marked
