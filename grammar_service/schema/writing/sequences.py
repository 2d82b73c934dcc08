"""Arrays of which so many items are of some kind: an automaton over kinds of items, which a grammar can say, though no keyword does.

Each state knows how many items there are, as far as that matters, and how many of them satisfy each `contains`. It is written as the
keyword SEQUENCE, which no user's schema can have: `edges` are [state, kind, state] with kinds as indices of `prefixItems`, `ends` are the
states in which the array may end; the first state is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from grammar_service.schema.algebra.arrays import Arrays, Contained
from grammar_service.schema.algebra.expression import NOTHING, Empty, Expression, every, negated
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.keywords import SEQUENCE, Schema

MAX_EDGES = 600
"""Of one array's automaton: each is a production of the grammar."""


class _State(NamedTuple):
    """`items` so far, at most as many as are told apart; `counts` of those that satisfy each part, alike."""

    items: int
    counts: tuple[int, ...]


class Sequence:
    """The automaton of a tidy shape. `empty` tells of items that nothing satisfies. Raises Inexact: it is too large."""

    def __init__(self, shape: Arrays, empty: Empty) -> None:
        self._shape = shape
        self._empty = empty
        self._known_empty: dict[Expression, bool] = {}
        self._kinds: dict[Expression, int] = {}
        self._numbers: dict[_State, int] = {}
        self._edges: list[tuple[int, int, int]] = []
        self._follow()
        self.edges, self.ends = self._fruitful()
        used = sorted({kind for _, kind, _ in self.edges})
        self.kinds = [list(self._kinds)[kind] for kind in used]
        self.edges = [(start, used.index(kind), end) for start, kind, end in self.edges]

    @property
    def is_possible(self) -> bool:
        """Whether some array is left, as far as that is known."""
        return bool(self.edges) or 0 in self.ends

    def to_keyword(self) -> Schema:
        """What stands in a schema for it."""
        return {SEQUENCE: {"edges": [list(edge) for edge in self.edges], "ends": list(self.ends)}}

    def _follow(self) -> None:
        waiting = [_State(0, (0,) * len(self._shape.contained))]
        self._numbers[waiting[0]] = 0
        while waiting:
            state = waiting.pop()
            for asked, counts in self._next_items(state):
                if asked == NOTHING or self._is_empty(asked):
                    continue
                after = _State(min(state.items + 1, self._most_items), counts)
                if after not in self._numbers:
                    self._numbers[after] = len(self._numbers)
                    waiting.append(after)
                kind = self._kinds.setdefault(asked, len(self._kinds))
                self._edges.append((self._numbers[state], kind, self._numbers[after]))
                if len(self._edges) > MAX_EDGES:
                    raise Inexact(f"`contains` takes more than {MAX_EDGES} steps between numbers of items that are told apart")

    @property
    def _most_items(self) -> int:
        """From there on it does not matter how many there are."""
        told = [len(self._shape.prefix), self._shape.least, *(part.start for part in self._shape.contained)]
        return max(told) if self._shape.most is None else self._shape.most

    def _next_items(self, state: _State) -> Iterator[tuple[Expression, tuple[int, ...]]]:
        """What the next item may be, each with the counts behind it."""
        if state.items == self._shape.most:
            return
        item = self._shape.item(state.items)
        parts = zip(self._shape.contained, state.counts, strict=True)
        choices = [_choices(part, count) if state.items >= part.start else [(None, count)] for part, count in parts]
        for chosen in product(*choices):
            yield every(item, *(asked for asked, _ in chosen if asked is not None)), tuple(count for _, count in chosen)

    def _is_empty(self, expression: Expression) -> bool:
        if expression not in self._known_empty:
            self._known_empty[expression] = self._empty(expression)
        return self._known_empty[expression]

    def _fruitful(self) -> tuple[list[tuple[int, int, int]], list[int]]:
        """The edges from which an end is reached, and the ends."""
        needed = [part.least for part in self._shape.contained]
        ends = [
            number
            for state, number in self._numbers.items()
            if state.items >= self._shape.least and all(count >= least for count, least in zip(state.counts, needed, strict=True))
        ]
        leading: dict[int, list[int]] = {}
        for start, _, end in self._edges:
            leading.setdefault(end, []).append(start)
        found, waiting = set(ends), list(ends)
        while waiting:
            more = [start for start in leading.get(waiting.pop(), ()) if start not in found]
            found.update(more)
            waiting += more
        return [edge for edge in self._edges if edge[2] in found], ends


def _choices(part: Contained, count: int) -> list[tuple[Expression | None, int]]:
    """What the next item is asked to be (None: nothing), and how many satisfy the part then. Where there is no upper bound, nobody need
    know of an item whether it is one more."""
    if part.most is None:
        return [(None, count), (part.item, count + 1)] if count < part.least else [(None, count)]
    others: list[tuple[Expression | None, int]] = [(negated(part.item), count)]
    return [*others, (part.item, count + 1)] if count < part.most else others
