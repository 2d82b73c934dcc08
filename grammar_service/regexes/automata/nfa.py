"""Thompson's construction."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.classes import ANY, CodePoints
from grammar_service.regexes.syntax import Alternation, Assertion, Characters, Concatenation, Node, Repetition

MAX_NFA_STATES = 4000
"""Of one automaton: 54 ms and 1 MB to build."""
MAX_GROUP_DEPTH = 100
"""Groups inside one another: the construction takes three calls for each, and Python has a thousand."""


@dataclass(frozen=True, slots=True)
class Check:
    """A step without a character under a condition. `ahead`: a path from state `place` of the same automaton to one of its ends exists (or
    not, where `negative`) in the text that follows; else: the text so far is in (not in) the set of `behind[place]`."""

    target: int
    place: int
    ahead: bool
    negative: bool


class Nfa:
    """States are numbers; `empty[s]` are steps without a character, `steps[s]` those on code points, `checks[s]` those under a condition.
    `ends` are the states in which the whole, or what a condition looks ahead for, has matched; `behind` is what text so far may have to
    end with. Raises UnsupportedGrammar when it takes more than MAX_NFA_STATES."""

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.steps: list[list[tuple[CodePoints, int]]] = []
        self.checks: list[list[Check]] = []
        self.ends: set[int] = set()
        self.behind: list[Alternation] = []

    def state(self) -> int:
        if len(self.empty) >= MAX_NFA_STATES:
            raise UnsupportedGrammar("the pattern is too large to be combined with others")
        self.empty.append([])
        self.steps.append([])
        self.checks.append([])
        return len(self.empty) - 1

    def link(self, source: int, target: int) -> None:
        self.empty[source].append(target)

    def state_behind(self, source: int) -> int:
        """A new state that is reached from `source` without a character."""
        state = self.state()
        self.link(source, state)
        return state

    def step(self, source: int, points: CodePoints) -> int:
        """A new state that is reached from `source` on one of some code points."""
        state = self.state()
        self.steps[source].append((points.with_surrogates(), state))
        return state

    def anything_behind(self, source: int) -> int:
        """A new state that is reached from `source` on any text."""
        state = self.state_behind(source)
        self.steps[state].append((ANY, state))
        return state

    def add(self, node: Node, start: int, depth: int = 0) -> int:
        """Add the states of a regex behind `start`; returns the state in which it has matched.

        Raises UnsupportedGrammar: groups are nested deeper than MAX_GROUP_DEPTH.
        """
        match node:
            case Characters(points):
                return self.step(start, points)
            case Concatenation(parts):
                for part in parts:
                    start = self.add(part, start, depth)
                return start
            case Alternation(branches):
                if depth >= MAX_GROUP_DEPTH:
                    raise UnsupportedGrammar("the pattern is nested too deep to be combined with others")
                end = self.state()
                for branch in branches:
                    self.link(self.add(branch, self.state_behind(start), depth + 1), end)
                return end
            case Repetition():
                return self._add_repetition(node, start, depth)
            case Assertion():
                return self._add_assertion(node, start, depth)

    def _add_assertion(self, node: Assertion, start: int, depth: int) -> int:
        target = self.state()
        if node.ahead:
            place = self.state()
            self.ends.add(self.anything_behind(self.add(node.inner, place, depth + 1)))
        else:
            if node.inner not in self.behind:
                self.behind.append(node.inner)
            place = self.behind.index(node.inner)
        self.checks[start].append(Check(target, place, node.ahead, node.negative))
        return target

    def _add_repetition(self, node: Repetition, start: int, depth: int) -> int:
        """Copies of the inner node one behind another, of which the last ones may be left out, and the very last may be gone through
        again."""
        copies = max(node.least, 1) if node.most is None else max(node.least, node.most, 1)
        ends = [start]
        for _ in range(copies):
            begin = self.state_behind(ends[-1])
            ends.append(self.add(node.inner, begin, depth))
        if node.most is None:
            self.link(ends[-1], begin)
        out = self.state()
        for end in ends[node.least : None if node.most is None else node.most + 1]:
            self.link(end, out)
        return out
