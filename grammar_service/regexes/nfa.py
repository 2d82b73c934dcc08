"""Thompson's construction."""

from __future__ import annotations

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.classes import CodePoints
from grammar_service.regexes.syntax import Alternation, Characters, Concatenation, Node, Repetition

MAX_NFA_STATES = 4000
"""Of one automaton: 54 ms and 1 MB to build."""
MAX_GROUP_DEPTH = 100
"""Groups inside one another: the construction takes three calls for each, and Python has a thousand."""


class Nfa:
    """States are numbers; `empty[s]` are steps without a character, `steps[s]` those on code points. Raises UnsupportedGrammar when it
    takes more than MAX_NFA_STATES."""

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.steps: list[list[tuple[CodePoints, int]]] = []

    def state(self) -> int:
        if len(self.empty) >= MAX_NFA_STATES:
            raise UnsupportedGrammar("the pattern is too large to be combined with others")
        self.empty.append([])
        self.steps.append([])
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

    def _add_repetition(self, node: Repetition, start: int, depth: int) -> int:
        """Copies of the inner node one behind another, of which the last ones may be left out."""
        ends = [start, self.add(node.inner, start, depth)]
        for _ in range(1, max(node.least, node.most or 0)):
            ends.append(self.add(node.inner, self.state_behind(ends[-1]), depth))
        out = self.state()
        most = max(node.least, 1) if node.most is None else node.most
        for end in ends[node.least : most + 1]:
            self.link(end, out)
        if node.most is None:
            self.link(self.add(node.inner, self.state_behind(out), depth), out)
        return out
