"""A deterministic automaton that can be changed, with the edges into each state at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from grammar_service.automata.token_index import TokenIndex


class MergeGraph:
    """`after[s]`: token → state behind it; `start`; `accepting`. States are numbers, and may be removed.

    `leaving(t)` and `entering(t)` are the states that an edge on token t leaves and enters."""

    def __init__(self, moves: Sequence[Mapping[int, int]], accepting: Iterable[int], start: int = 0) -> None:
        self.start = start
        self.accepting = set(accepting)
        self.after: dict[int, dict[int, int]] = {state: {} for state in range(len(moves))}
        self._before: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._leaving: dict[int, set[int]] = defaultdict(set)
        self._entering: dict[int, set[int]] = defaultdict(set)
        self._next = len(moves)
        for state, row in enumerate(moves):
            for token, target in row.items():
                self.add(state, token, target)

    @property
    def edges(self) -> int:
        return sum(map(len, self.after.values()))

    def leaving(self, token: int) -> set[int]:
        return self._leaving[token]

    def entering(self, token: int) -> set[int]:
        return self._entering[token]

    def before(self, state: int, token: int) -> list[int]:
        """The states from which the token leads to this one."""
        return [*self._before[state].get(token, ())]

    def tokens_into(self, state: int) -> list[int]:
        return [*self._before[state]]

    def new_state(self, accepts: bool) -> int:
        state = self._next
        self._next += 1
        self.after[state] = {}
        if accepts:
            self.accepting.add(state)
        return state

    def add(self, source: int, token: int, target: int) -> None:
        """An edge; nothing where it is there. Raises ValueError: the token leads elsewhere."""
        if self.after[source].setdefault(token, target) != target:
            raise ValueError(f"state {source} would have two ways on by token {token}")
        self._before[target][token].add(source)
        self._leaving[token].add(source)
        self._entering[token].add(target)

    def drop(self, source: int, token: int) -> None:
        target = self.after[source].pop(token)
        self._leaving[token].discard(source)
        into = self._before[target]
        into[token].discard(source)
        if not into[token]:
            del into[token]
            self._entering[token].discard(target)

    def remove(self, state: int) -> None:
        for token in [*self.after[state]]:
            self.drop(state, token)
        for token in self.tokens_into(state):
            for source in self.before(state, token):
                self.drop(source, token)
        del self.after[state]
        self.accepting.discard(state)

    def trim(self) -> None:
        """Remove states that are not reached, or that no accepting one is reached from; the start stays."""
        live = self._reaching() & self._reached() | {self.start}
        for state in [state for state in self.after if state not in live]:
            self.remove(state)

    def index(self) -> TokenIndex:
        """The same, with the start as state 0."""
        order = [self.start, *(state for state in self.after if state != self.start)]
        numbers = {state: number for number, state in enumerate(order)}
        moves = [{token: numbers[target] for token, target in self.after[state].items()} for state in order]
        return TokenIndex.of_moves(moves, [state in self.accepting for state in order]).trimmed()

    def _reached(self) -> set[int]:
        return _closed([self.start], lambda state: self.after[state].values())

    def _reaching(self) -> set[int]:
        return _closed(self.accepting, lambda state: [source for sources in self._before[state].values() for source in sources])


def _closed(states: Iterable[int], following: Callable[[int], Iterable[int]]) -> set[int]:
    found = set(states)
    waiting = [*found]
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return found
