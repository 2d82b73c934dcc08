"""A pre-tokenizer's regex as threads in the order in which a backtracking matcher would try them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grammar_service.canonical.pretokenizers.character_classes import CharacterClasses
from grammar_service.canonical.pretokenizers.pattern import Branch, Counted, NotAhead, One

END = -1
"""The class of what comes behind the text."""
Threads = tuple[int, ...]
"""Places where something is to be read, asked or matched, the preferred ones first."""


@dataclass(frozen=True, slots=True)
class _Place:
    """`read`: a character of `classes` leads to `after`; `unless`: to `after` without a character, unless the next is of `classes`; `fork`:
    to each of `ways`; `match`."""

    kind: str
    classes: frozenset[int] = frozenset()
    after: int = 0
    ways: tuple[int, ...] = ()


class Scanner:
    def __init__(self, branches: Iterable[Branch], classes: CharacterClasses) -> None:
        self._classes = classes
        self._places = [_Place("match")]
        self._known: dict[tuple[Threads, int], tuple[Threads, bool]] = {}
        ways = tuple(self._branch(branch) for branch in branches)
        self.start = self._reached([self._new(_Place("fork", ways=ways))])

    def settle(self, threads: Threads, following: int) -> tuple[Threads, bool]:
        """Before a character of the class `following`: the threads that may read on and are preferred to the first match, and whether there
        is a match."""
        key = threads, following
        if key not in self._known:
            reading: dict[int, None] = {}
            matched = self._settled(threads, following, reading, set())
            self._known[key] = tuple(reading), matched
        return self._known[key]

    def read(self, reading: Threads, following: int) -> Threads:
        """The threads behind a character; none are left where () is."""
        return self._reached(self._places[place].after for place in reading if following in self._places[place].classes)

    def _settled(self, threads: Threads, following: int, reading: dict[int, None], seen: set[int]) -> bool:
        for number in threads:
            if number in seen:
                continue
            seen.add(number)
            place = self._places[number]
            if place.kind == "read":
                reading[number] = None
            elif place.kind == "match":
                return True
            elif following not in place.classes:
                onward = self._reached([place.after])
                if self._settled(onward, following, reading, seen):
                    return True
        return False

    def _reached(self, numbers: Iterable[int]) -> Threads:
        """Forks followed, in order."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        waiting = [*numbers][::-1]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            if self._places[number].kind == "fork":
                waiting += self._places[number].ways[::-1]
            else:
                found[number] = None
        return tuple(found)

    def _new(self, place: _Place) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _branch(self, branch: Branch) -> int:
        after = 0
        for part in reversed(branch):
            after = self._counted(part, after)
        return after

    def _counted(self, part: Counted, after: int) -> int:
        if part.most is None:
            first = self._new(_Place("fork"))
            self._places[first] = _Place("fork", ways=(self._once(part, first), after))
        else:
            first = after
            for _ in range(part.most - part.least):
                first = self._new(_Place("fork", ways=(self._once(part, first), after)))
        for _ in range(part.least):
            first = self._once(part, first)
        return first

    def _once(self, part: Counted, after: int) -> int:
        match part.item:
            case One(written):
                return self._new(_Place("read", self._classes.of(written), after))
            case NotAhead(written):
                return self._new(_Place("unless", self._classes.of(written), after))
        ways: list[int] = []
        for word in part.item.words:
            first = after
            for letter in reversed(word):
                first = self._new(_Place("read", self._classes.of(letter), first))
            ways.append(first)
        return self._new(_Place("fork", ways=tuple(ways)))
