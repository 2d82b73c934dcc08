"""Code points that an automaton does not tell apart, as one letter."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

from grammar_service.regexes.classes import LAST, CodePoints
from grammar_service.regexes.effort import Effort


class Alphabet:
    """`cuts` are first code points of intervals, `letters` the letter of each; letters are numbers from 0."""

    def __init__(self, classes: Iterable[CodePoints], rows: Iterable[Sequence[tuple[int, int]]], effort: Effort) -> None:
        """No letter lies in one of the `classes` in part, or leads to different states by one of the `rows` (see `Moves`)."""
        different = list(dict.fromkeys(classes))
        listed = [*rows]
        ends = {end for points in different for low, high in points.ranges for end in (low, high + 1)}
        self.cuts = sorted(({0} | ends | {cut for row in listed for cut, _ in row}) - {LAST + 1})
        kinds: list[list[tuple[int, int]]] = [[] for _ in self.cuts]
        for number, points in enumerate(different):
            self._mark(kinds, number, ((low, high + 1, 0) for low, high in points.ranges), effort)
        for number, row in enumerate(listed, len(different)):
            self._mark(
                kinds, number, ((low, high, state) for (low, state), (high, _) in zip(row, [*row[1:], (LAST + 1, 0)], strict=True)), effort
            )
        names: dict[tuple[tuple[int, int], ...], int] = {}
        self.letters = [names.setdefault(tuple(kind), len(names)) for kind in kinds]
        self.first = {letter: cut for cut, letter in zip(reversed(self.cuts), reversed(self.letters), strict=True)}
        self._of = {points: self._letters_of(points) for points in different}

    def _mark(self, kinds: list[list[tuple[int, int]]], number: int, spans: Iterable[tuple[int, int, int]], effort: Effort) -> None:
        for low, end, state in spans:
            covered = range(bisect_left(self.cuts, low), bisect_left(self.cuts, end))
            effort.spend(1 + len(covered))
            for index in covered:
                kinds[index].append((number, state))

    def _letters_of(self, points: CodePoints) -> frozenset[int]:
        return frozenset(letter for letter, point in self.first.items() if point in points)

    def letter_of(self, point: int) -> int:
        return self.letters[bisect_right(self.cuts, point) - 1]

    def of(self, points: CodePoints) -> Collection[int]:
        """The letters of one of the classes."""
        return self._of[points]
