"""The subset construction: what an automaton of conditions may be in after a text, as one state of a deterministic one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from grammar_service.regexes.automata.alphabet import Alphabet
from grammar_service.regexes.automata.nfa import Check, Nfa
from grammar_service.regexes.effort import Effort

Moves = tuple[tuple[int, int], ...]
"""From one state: (first code point, next state), sorted by code point; the first entry is at 0."""
Goals = frozenset["Goal"]
Config = tuple[int, Goals]
"""A state of the automaton, and what the rest of the text must meet or miss."""
Configs = frozenset[Config]
Goal = tuple[bool, Configs]
"""Negative or not; where the search for what is looked ahead for stands."""
Before = tuple[int, ...]
"""The states of the sets that look behind."""
Subset = tuple[Configs, Before]

STEPS_A_CONFIG = 4
"""What it takes of an effort to look at a configuration: 4 µs."""
_NOTHING: Goals = frozenset()


class LookBehind(Protocol):
    """A set of strings, see `StringSet`."""

    @property
    def moves(self) -> tuple[Moves, ...]: ...

    @property
    def accepting(self) -> frozenset[int]: ...


class Subsets:
    """A goal is followed beside the text until it is met or missed, so that look-around stays exact wherever it stands."""

    def __init__(self, nfa: Nfa, behind: Sequence[LookBehind], effort: Effort) -> None:
        self._nfa = nfa
        self._behind = behind
        self._effort = effort
        classes = (points for steps in nfa.steps for points, _ in steps)
        self.alphabet = Alphabet(classes, (row for one in behind for row in one.moves), effort)
        self._steps = [[(self.alphabet.of(points), target) for points, target in steps] for steps in nfa.steps]
        self._next = [[dict(_by_letter(self.alphabet, row)) for row in one.moves] for one in behind]

    def start(self, state: int) -> Subset:
        before = (0,) * len(self._behind)
        return self._closed([(state, _NOTHING)], before), before

    def after(self, subset: Subset, letter: int) -> Subset:
        configs, before = subset
        following = tuple(rows[state][letter] for rows, state in zip(self._next, before, strict=True))
        return self._stepped(configs, letter, following, {}), following

    def accepts(self, subset: Subset) -> bool:
        return self._ends_here(subset[0])

    def _ends_here(self, configs: Configs) -> bool:
        ends = (goals for state, goals in configs if state in self._nfa.ends)
        return any(all(self._ends_here(inner) != negative for negative, inner in goals) for goals in ends)

    def _stepped(self, configs: Configs, letter: int, before: Before, known: dict[Configs, Configs]) -> Configs:
        if configs not in known:
            found: list[Config] = []
            for state, goals in configs:
                targets = [target for letters, target in self._steps[state] if letter in letters]
                self._effort.spend(STEPS_A_CONFIG * (1 + len(targets)))
                left = self._left(((negative, self._stepped(inner, letter, before, known)) for negative, inner in goals) if targets else ())
                if left is not None:
                    found.extend((target, left) for target in targets)
            known[configs] = self._closed(found, before)
        return known[configs]

    def _left(self, goals: Iterable[Goal]) -> Goals | None:
        """The goals that are still open; None where one can no longer be reached."""
        left: set[Goal] = set()
        for negative, configs in goals:
            if self._is_met(configs):
                if negative:
                    return None
            elif configs:
                left.add((negative, configs))
            elif not negative:
                return None
        return frozenset(left)

    def _is_met(self, configs: Configs) -> bool:
        return any(not goals and state in self._nfa.ends for state, goals in configs)

    def _closed(self, configs: Iterable[Config], before: Before) -> Configs:
        """With all that is reached without a character; less what only leads there, and what another one says under fewer conditions."""
        reached = dict.fromkeys(configs)
        waiting = list(reached)
        while waiting:
            state, goals = waiting.pop()
            found = [(target, goals) for target in self._nfa.empty[state]]
            for check in self._nfa.checks[state]:
                more = self._checked(check, goals, before)
                found += [] if more is None else [(check.target, more)]
            new = [config for config in found if config not in reached]
            self._effort.spend(STEPS_A_CONFIG * (1 + len(new)))
            reached.update(dict.fromkeys(new))
            waiting += new
        return frozenset(self._strongest((state, goals) for state, goals in reached if self._steps[state] or state in self._nfa.ends))

    def _checked(self, check: Check, goals: Goals, before: Before) -> Goals | None:
        if not check.ahead:
            return goals if (before[check.place] in self._behind[check.place].accepting) != check.negative else None
        left = self._left([(check.negative, self._closed([(check.place, _NOTHING)], before))])
        return None if left is None else goals | left

    def _strongest(self, configs: Iterable[Config]) -> list[Config]:
        kept: dict[int, list[Goals]] = {}
        for state, goals in sorted(configs, key=lambda config: len(config[1])):
            others = kept.setdefault(state, [])
            if goals and others:
                self._effort.spend(len(others))
            if not any(other <= goals for other in others):
                others.append(goals)
        return [(state, goals) for state, several in kept.items() for goals in several]


def _by_letter(alphabet: Alphabet, row: Moves) -> Iterable[tuple[int, int]]:
    for letter, point in alphabet.first.items():
        yield letter, [state for cut, state in row if cut <= point][-1]
