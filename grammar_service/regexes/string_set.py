"""Regular sets of strings, closed under intersection and complement: minimal deterministic automata over code points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.automata.nfa import Nfa
from grammar_service.regexes.automata.subsets import Moves, Subset, Subsets
from grammar_service.regexes.classes import points
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.syntax import Alternation, Regex

MAX_DFA_STATES = 400
"""Of one set. More would rarely help: rendered as a regex, 33 states may be longer than MAX_TEXT, where a chain of 100 is not."""
SET_EFFORT = 500_000
"""Steps, of 0.2 to 1.3 µs each, for one set of no document and what is made of it: up to 0.6 s."""
MAX_LENGTH_BOUND = 100
"""Characters. Each is a state, and a set of all lengths up to 100 takes 0.1 s to be rendered together with one class."""


@dataclass(frozen=True)
class StringSet:
    """The strings that lead from state 0 to an accepting state. Two equal sets have equal automata.

    Every operation raises UnsupportedGrammar where the result takes more than MAX_DFA_STATES, or more than is left of `effort`, which
    results inherit.
    """

    moves: tuple[Moves, ...]
    accepting: frozenset[int]
    effort: Effort = field(default_factory=lambda: Effort(SET_EFFORT), compare=False, repr=False)

    @classmethod
    def everything(cls) -> StringSet:
        return cls((((0, 0),),), frozenset({0}))

    @classmethod
    def of_strings(cls, strings: Iterable[str]) -> StringSet:
        nfa, start = _started()
        end = nfa.state()
        nfa.ends.add(end)
        for text in strings:
            at = start
            for char in text:
                at = nfa.step(at, points(char))
            nfa.link(at, end)
        return _determined(nfa, start, Effort(SET_EFFORT))

    @classmethod
    def of_pattern(cls, pattern: str, effort: Effort | None = None) -> StringSet:
        """The strings that a JSON Schema `pattern` matches. Raises GrammarError as `parse_regex` does."""
        return cls.of_regex(parse_regex(pattern, Dialect.ECMA), effort or Effort(SET_EFFORT))

    @classmethod
    def of_regex(cls, regex: Regex, effort: Effort, max_states: int = MAX_DFA_STATES) -> StringSet:
        return _determined(*_of_regex(regex), effort, max_states)

    @classmethod
    def _ending_with(cls, inner: Alternation, effort: Effort) -> StringSet:
        nfa, start = _started()
        nfa.ends.add(nfa.add(inner, nfa.anything_behind(start)))
        if any(check.ahead for checks in nfa.checks for check in checks):
            raise UnsupportedGrammar("regex: look-ahead, `$` or a word boundary inside look-behind is not supported")
        return _determined(nfa, start, effort)

    @classmethod
    def of_lengths(cls, least: int, most: int | None) -> StringSet:
        """Raises UnsupportedGrammar: a bound is over MAX_LENGTH_BOUND."""
        last = least if most is None else most
        if max(least, last) > MAX_LENGTH_BOUND:
            raise UnsupportedGrammar("length bounds as large as these cannot be combined with patterns")
        chain = [((0, index + 1),) for index in range(last)]
        end: Moves = ((0, last),) if most is None else ((0, last + 1),)
        dead = [] if most is None else [((0, last + 1),)]
        return _minimal([*chain, end, *dead], set(range(least, last + 1)), Effort(SET_EFFORT))

    @classmethod
    def all_of(cls, sets: Iterable[StringSet]) -> StringSet:
        """The intersection of many, in pairs of pairs: one after another, the whole would be made minimal again for each."""
        left = list(sets)
        while len(left) > 1:
            left = [one.intersection(other) for one, other in zip_longest(left[::2], left[1::2], fillvalue=cls.everything())]
        return left[0] if left else cls.everything()

    @cached_property
    def is_empty(self) -> bool:
        return not self.accepting

    @cached_property
    def is_everything(self) -> bool:
        return len(self.moves) == 1 and bool(self.accepting)

    @cached_property
    def live(self) -> frozenset[int]:
        """The states from which an accepting one can be reached."""
        return frozenset(_reaching(self.moves, self.accepting))

    def __contains__(self, text: str) -> bool:
        state = 0
        for char in text:
            moves = self.moves[state]
            state = moves[bisect_right(moves, (ord(char), len(self.moves))) - 1][1]
        return state in self.accepting

    def complement(self) -> StringSet:
        return StringSet(self.moves, frozenset(range(len(self.moves))) - self.accepting, self.effort)

    def intersection(self, other: StringSet) -> StringSet:
        if self.is_everything or other.is_empty:
            return other
        return self if other.is_everything or self.is_empty else _product(self, other, lambda left, right: left and right)

    def union(self, other: StringSet) -> StringSet:
        return _product(self, other, lambda left, right: left or right)


class Recognizer:
    """Tells text by text what a JSON Schema `pattern` matches, where the automaton of all texts may be too large. Raises as
    `StringSet.of_pattern`."""

    def __init__(self, pattern: str, effort: Effort) -> None:
        nfa, start = _of_regex(parse_regex(pattern, Dialect.ECMA))
        self._subsets = Subsets(nfa, _behind(nfa, effort), effort)
        self._start = self._subsets.start(start)
        self._effort = effort
        self._known: dict[tuple[Subset, int], Subset] = {}

    def matches(self, text: str) -> bool:
        subset = self._start
        for char in text:
            subset = self._subsets.after(subset, self._subsets.alphabet.letter_of(ord(char)))
        return self._subsets.accepts(subset)

    def meets(self, strings: StringSet) -> bool:
        """Whether it matches any of them: no set of what it matches is built for that, only followed along those that are asked for."""
        live = strings.live
        waiting = [(0, self._start)]
        seen = set(waiting)
        while waiting:
            state, subset = waiting.pop()
            if state in strings.accepting and self._subsets.accepts(subset):
                return True
            for target, letter in self._steps(strings.moves[state], live):
                pair = (target, self._after(subset, letter))
                # Without configurations nothing is left to be matched.
                if pair not in seen and pair[1][0]:
                    seen.add(pair)
                    waiting.append(pair)
        return False

    def _steps(self, moves: Moves, live: frozenset[int]) -> set[tuple[int, int]]:
        alphabet = self._subsets.alphabet
        cuts = sorted({*alphabet.cuts, *(cut for cut, _ in moves)})
        self._effort.spend(len(cuts))
        return {(target, alphabet.letter_of(cut)) for cut in cuts if (target := _after(moves, cut)) in live}

    def _after(self, subset: Subset, letter: int) -> Subset:
        if (subset, letter) not in self._known:
            self._known[subset, letter] = self._subsets.after(subset, letter)
        return self._known[subset, letter]


def _of_regex(regex: Regex) -> tuple[Nfa, int]:
    nfa, start = _started()
    end = nfa.state()
    nfa.ends.add(end)
    for branch in regex.branches:
        first = start if branch.start else nfa.anything_behind(start)
        last = nfa.add(branch.body, first)
        nfa.link(last if branch.end else nfa.anything_behind(last), end)
    return nfa, start


def _started() -> tuple[Nfa, int]:
    nfa = Nfa()
    return nfa, nfa.state()


def _behind(nfa: Nfa, effort: Effort) -> list[StringSet]:
    """What the automaton looks back for, as the texts that end with it."""
    return [StringSet._ending_with(inner, effort) for inner in nfa.behind]


def _determined(nfa: Nfa, start: int, effort: Effort, max_states: int = MAX_DFA_STATES) -> StringSet:
    subsets = Subsets(nfa, _behind(nfa, effort), effort)
    alphabet = subsets.alphabet
    waiting = [subsets.start(start)]
    numbers = {waiting[0]: 0}
    moves: list[Moves] = []
    while len(moves) < len(waiting):
        targets: list[int] = []
        for letter in range(len(alphabet.first)):
            following = subsets.after(waiting[len(moves)], letter)
            if following not in numbers:
                numbers[following] = _bounded(len(waiting), max_states)
                waiting.append(following)
            targets.append(numbers[following])
        effort.spend(len(alphabet.cuts))
        moves.append(_merged([(cut, targets[letter]) for cut, letter in zip(alphabet.cuts, alphabet.letters, strict=True)]))
    return _minimal(moves, {number for subset, number in numbers.items() if subsets.accepts(subset)}, effort)


def _product(left: StringSet, right: StringSet, holds: Callable[[bool, bool], bool]) -> StringSet:
    numbers = {(0, 0): 0}
    waiting = [(0, 0)]
    moves: list[Moves] = []
    effort = left.effort if len(left.moves) > 1 else right.effort
    while len(moves) < len(waiting):
        row: list[tuple[int, int]] = []
        for cut, pair in _paired(left.moves[waiting[len(moves)][0]], right.moves[waiting[len(moves)][1]]):
            if pair not in numbers:
                numbers[pair] = _bounded(len(waiting))
                waiting.append(pair)
            row.append((cut, numbers[pair]))
        effort.spend(3 * len(row))
        moves.append(_merged(row))
    accepting = {number for (a, b), number in numbers.items() if holds(a in left.accepting, b in right.accepting)}
    return _minimal(moves, accepting, effort)


def _paired(left: Moves, right: Moves) -> list[tuple[int, tuple[int, int]]]:
    cuts = sorted({cut for cut, _ in left} | {cut for cut, _ in right})
    return [(cut, (_after(left, cut), _after(right, cut))) for cut in cuts]


def _after(moves: Moves, point: int) -> int:
    return moves[bisect_right(moves, point, key=lambda move: move[0]) - 1][1]


def _bounded(count: int, most: int = MAX_DFA_STATES) -> int:
    if count > most:
        raise UnsupportedGrammar("these patterns are too large to be combined")
    return count


def _merged(row: list[tuple[int, int]]) -> Moves:
    return tuple(move for index, move in enumerate(row) if not index or row[index - 1][1] != move[1])


def _minimal(moves: list[Moves], accepting: set[int], effort: Effort) -> StringSet:
    """Moore's refinement, then states numbered as they are met from the start, so that equal sets are equal values.

    It begins with the longest text that each state still accepts, which tells the states of a chain apart at once.
    """
    effort.spend(2 * sum(map(len, moves)))
    kinds = list(zip((state in accepting for state in range(len(moves))), _longest(moves, accepting), strict=True))
    numbers = {kind: index for index, kind in enumerate(dict.fromkeys(kinds))}
    blocks = [numbers[kind] for kind in kinds]
    while True:
        effort.spend(sum(map(len, moves)))
        rows = [(blocks[state], _merged([(cut, blocks[target]) for cut, target in moves[state]])) for state in range(len(moves))]
        names = {row: index for index, row in enumerate(dict.fromkeys(rows))}
        refined = [names[row] for row in rows]
        if len(names) == len(set(blocks)):
            break
        blocks = refined
    return _numbered(moves, refined, accepting, effort)


def _longest(moves: list[Moves], accepting: set[int]) -> list[int]:
    """Of each state, the length of the longest text that is accepted from there; -1: none is, or there is no longest."""
    live = _reaching(moves, accepting)
    targets = [{target for _, target in row if target in live} for row in moves]
    sources: list[list[int]] = [[] for _ in moves]
    for state in live:
        for target in targets[state]:
            sources[target].append(state)
    open_targets = [len(several) for several in targets]
    found = [-1] * len(moves)
    waiting = [state for state in live if not open_targets[state]]
    for state in waiting:
        found[state] = max((found[target] + 1 for target in targets[state]), default=0)
        for source in sources[state]:
            open_targets[source] -= 1
            if not open_targets[source]:
                waiting.append(source)
    return found


def _reaching(moves: Sequence[Moves], accepting: Iterable[int]) -> set[int]:
    """The states from which an accepting one can be reached."""
    sources: list[list[int]] = [[] for _ in moves]
    for state, row in enumerate(moves):
        for _, target in row:
            sources[target].append(state)
    waiting = list(accepting)
    live = set(waiting)
    for state in waiting:
        new = [source for source in sources[state] if source not in live]
        live.update(new)
        waiting += dict.fromkeys(new)
    return live


def _numbered(moves: list[Moves], blocks: list[int], accepting: set[int], effort: Effort) -> StringSet:
    member = {block: state for state, block in reversed(list(enumerate(blocks)))}
    order = {blocks[0]: 0}
    waiting = [blocks[0]]
    rows: list[Moves] = []
    while len(rows) < len(waiting):
        row = _merged([(cut, blocks[target]) for cut, target in moves[member[waiting[len(rows)]]]])
        for _, block in row:
            if block not in order:
                order[block] = len(waiting)
                waiting.append(block)
        rows.append(tuple((cut, order[block]) for cut, block in row))
    return StringSet(tuple(rows), frozenset(order[block] for block in order if member[block] in accepting), effort)
