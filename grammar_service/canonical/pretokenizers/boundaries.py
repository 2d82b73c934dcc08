"""Where pieces end, guessed as the text is read: each guess is a configuration, and a wrong one has no way on, or may not end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grammar_service.canonical.pretokenizers.character_classes import CharacterClasses
from grammar_service.canonical.pretokenizers.scanner import END, Scanner, Threads
from grammar_service.errors import UnsupportedGrammar

MAX_CONFIGURATIONS = 2_000
Configuration = tuple[frozenset[Threads], Threads]
"""Threads that must never match, since they were preferred to a match that was taken for the end of a piece; and those of the piece that is
being read, () where it has ended."""
Ways = tuple[Configuration | None, Configuration | None]
"""With a boundary before the next character, and without."""
_START: Configuration = (frozenset(), ())
_DIGIT: Configuration = (frozenset([()]), ())
"""Behind a digit that is a piece of its own."""


@dataclass(frozen=True, eq=False)
class Boundaries:
    """A configuration is a number; 0 is the start of a text, where a boundary is certain, and nothing leads there. `ways` int64
    [2, configurations, classes]: the one behind a character without (0) and with (1) a boundary before it, 0: none. `final` bool
    [configurations]: the text may end. Of the ways through a text exactly one ends in a final one: its boundaries are the tokenizer's."""

    ways: npt.NDArray[np.int64]
    final: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, scanner: Scanner, classes: CharacterClasses) -> Boundaries:
        """Raises UnsupportedGrammar: the regex leaves something of a text over, or has too many configurations."""
        return _Explorer(scanner, classes).explore()

    def __len__(self) -> int:
        return len(self.final)


class _Explorer:
    def __init__(self, scanner: Scanner, classes: CharacterClasses) -> None:
        self._scanner = scanner
        self._digits = classes.digits
        self._classes = classes.count
        if any(scanner.settle(scanner.start, following)[1] for following in range(END, classes.count)):
            raise UnsupportedGrammar("the tokenizer's regex matches the empty text")

    def explore(self) -> Boundaries:
        ways = self._ways()
        blocks = self._blocks(ways, self._live(ways))
        count = max(blocks.values()) + 1
        table = np.zeros((2, count, self._classes), np.int64)
        final = np.zeros(count, bool)
        for configuration, block in blocks.items():
            if block or configuration == _START:
                final[block] = self._is_final(configuration)
                for boundary in (0, 1):
                    targets = [pair[1 - boundary] for pair in ways[configuration]]
                    table[boundary, block] = [0 if target is None else blocks[target] for target in targets]
        found = Boundaries(table, final)
        _refuse_leftovers(found)
        return found

    def _ways(self) -> dict[Configuration, list[Ways]]:
        found: dict[Configuration, list[Ways]] = {}
        waiting = [_START]
        while waiting:
            configuration = waiting.pop()
            if configuration in found:
                continue
            found[configuration] = [self._read(configuration, following) for following in range(self._classes)]
            waiting += [target for pair in found[configuration] for target in pair if target is not None]
            if len(found) > MAX_CONFIGURATIONS:
                raise UnsupportedGrammar("the tokenizer's regex has too many configurations")
        return found

    def _read(self, configuration: Configuration, following: int) -> Ways:
        if configuration in (_START, _DIGIT):
            return (_DIGIT if following in self._digits else self._begun(frozenset(), following)), None
        if following in self._digits:  # the regex gets the text up to there
            return (_DIGIT if self._is_final(configuration) else None), None
        left = self._obliged(configuration[0], following)
        if left is None:
            return None, None
        reading, matched = self._scanner.settle(configuration[1], following)
        onward = self._scanner.read(reading, following)
        cut = self._begun(left | {onward} if onward else left, following) if matched else None
        return cut, (left, onward) if onward else None

    def _obliged(self, obligations: frozenset[Threads], following: int) -> frozenset[Threads] | None:
        left: set[Threads] = set()
        for threads in obligations:
            reading, matched = self._scanner.settle(threads, following)
            if matched:
                return None
            if onward := self._scanner.read(reading, following):
                left.add(onward)
        return frozenset(left)

    def _begun(self, obligations: frozenset[Threads], following: int) -> Configuration | None:
        reading, _ = self._scanner.settle(self._scanner.start, following)
        onward = self._scanner.read(reading, following)
        return (obligations, onward) if onward else None

    def _is_final(self, configuration: Configuration) -> bool:
        if configuration in (_START, _DIGIT):
            return True
        missed = not any(self._scanner.settle(threads, END)[1] for threads in configuration[0])
        return missed and self._scanner.settle(configuration[1], END)[1]

    def _live(self, ways: Mapping[Configuration, list[Ways]]) -> set[Configuration]:
        """Those from which a text may come to an end."""
        live = {configuration for configuration in ways if self._is_final(configuration)}
        size = 0
        while len(live) != size:
            size = len(live)
            live |= {one for one, pairs in ways.items() if any(target in live for pair in pairs for target in pair)}
        return live

    def _blocks(self, ways: Mapping[Configuration, list[Ways]], live: set[Configuration]) -> dict[Configuration, int]:
        """Numbers from 1, equal for those that behave alike; 0 for the start, and for what has no way on."""
        blocks = {one: (1 + self._is_final(one)) * (one in live and one != _START) for one in ways}
        while True:
            rows = {
                one: (block, *(0 if target is None else blocks[target] for pair in ways[one] for target in pair)) if block else ()
                for one, block in blocks.items()
            }
            names = {row: number for number, row in enumerate(dict.fromkeys([(), *rows.values()]))}
            refined = {one: names[row] for one, row in rows.items()}
            if len(set(refined.values())) == len(set(blocks.values())):
                return refined
            blocks = refined


def _refuse_leftovers(boundaries: Boundaries) -> None:
    """Every text must have its way through."""
    start = frozenset([0])
    seen = {start}
    waiting = [start]
    while waiting:
        configurations = waiting.pop()
        if not any(boundaries.final[one] for one in configurations):
            raise UnsupportedGrammar("the tokenizer's regex leaves parts of texts over")
        for following in range(boundaries.ways.shape[2]):
            after = frozenset(boundaries.ways[:, [*configurations], following].ravel().tolist()) - {0}
            if after not in seen:
                seen.add(after)
                waiting.append(after)
            if len(seen) > MAX_CONFIGURATIONS:
                raise UnsupportedGrammar("the tokenizer's regex has too many configurations")
