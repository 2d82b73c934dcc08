"""CartesianMerge: the token index of a language and an automaton of a tokenizer's own sequences, walked together and trimmed (Tran-Thien
2024, appendix, algorithms 3, 5 and 6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol, TypeVar

from grammar_service.automata.direct_merge import Merge
from grammar_service.automata.token_index import TokenIndex
from grammar_service.errors import GrammarTooLarge

MAX_NODES = 200_000
State = TypeVar("State", bound=Hashable)


class TokenizerAutomaton(Protocol[State]):
    """Accepts the sequences that a tokenizer makes of texts."""

    @property
    def start(self) -> State: ...

    def after(self, state: State, token: int) -> State | None:
        """None: no text has this sequence."""

    def may_end(self, state: State) -> bool:
        """Whether the sequence so far is that of a whole text."""


def cartesian_merge(index: TokenIndex, tokenizer: TokenizerAutomaton[State], max_nodes: int = MAX_NODES) -> TokenIndex:
    """The sequences of an index that are a tokenizer's own; no state of the result is a dead end. Raises GrammarTooLarge: more than
    `max_nodes`, edges among them."""
    waiting = [(0, tokenizer.start)]
    numbers = {waiting[0]: 0}
    moves: list[dict[int, int]] = []
    edges = 0
    for at, state in waiting:
        row: dict[int, int] = {}
        for token, target in zip(*(column.tolist() for column in index.row(at)), strict=True):
            after = tokenizer.after(state, token)
            if after is not None:
                pair = target, after
                if pair not in numbers:
                    numbers[pair] = len(waiting)
                    waiting.append(pair)
                row[token] = numbers[pair]
        moves.append(row)
        edges += len(row)
        if edges + len(waiting) > max_nodes:
            raise GrammarTooLarge(f"the automaton of all encodings takes more than {max_nodes} states and edges")
    accepting = [bool(index.accepting[at]) and tokenizer.may_end(state) for at, state in waiting]
    return TokenIndex.of_moves(moves, accepting).trimmed()


class MergeTableDfa:
    """Algorithm 3: the automaton of all sequences of a merge table, a state a set of tokens that may not follow (`forbidden`), and
    `behind` the state behind each token. For tables that are trained, without pre-tokenizer; its size grows with the square of the
    table's, so that real ones get `grammar_service.canonical`."""

    start = 0

    def __init__(self, letters: Iterable[int], merges: Iterable[Merge]) -> None:
        self.behind = dict.fromkeys(letters, 0)
        self.forbidden: list[set[int]] = [set()]
        self._entered_by: list[set[int]] = [set(self.behind)]
        for merge in merges:
            if merge.left in self.behind and merge.right in self.behind and merge.right not in self.forbidden[self.behind[merge.left]]:
                self._merge(merge)

    def after(self, state: int, token: int) -> int | None:
        return None if token in self.forbidden[state] else self.behind.get(token)

    def may_end(self, state: int) -> bool:
        return True

    def _merge(self, merge: Merge) -> None:
        target = self.behind[merge.right]  # of an even number of letters, where the left operand is the same one
        state = self._own_state(merge)
        self.forbidden[state].add(merge.right)
        if merge.whole in self.behind:
            self._entered_by[self.behind[merge.whole]].discard(merge.whole)
        self.behind[merge.whole] = target
        self._entered_by[target].add(merge.whole)
        for forbidden in self.forbidden:
            if merge.left in forbidden:
                forbidden.add(merge.whole)

    def _own_state(self, merge: Merge) -> int:
        """The state behind the left operand, where only that leads to; a copy of it where others do, and where it is the start: no token
        stands before it."""
        state = self.behind[merge.left]
        if state != self.start and len(self._entered_by[state]) == 1 and merge.left != merge.right:
            return state
        self._entered_by[state].discard(merge.left)
        self._entered_by.append({merge.left})
        self.forbidden.append(set(self.forbidden[state]))
        self.behind[merge.left] = len(self.forbidden) - 1
        return self.behind[merge.left]
