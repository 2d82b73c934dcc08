"""How many strings of a regular set begin in some way, whatever byte of a character that ends at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from grammar_service.regexes.automata.subsets import Moves
from grammar_service.regexes.unending import endless, leading

MANY = 2**24
"""As good as endless: no text has so many strings."""
REMEMBERED = 2**26
"""Bytes of the beginnings that are remembered."""
_OVERHEAD = 100
_NEAR = 64
"""Bytes: a text is asked for again when it has grown by a token."""
_STEP = 256
"""Bytes between what is remembered of the rest of a long text: all its beginnings would be the square of its length."""
_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class _At(NamedTuple):
    """A state, and the bits so far of a character of which `missing` bytes are to come; `least`: the first character of as many bytes."""

    state: int
    bits: int = 0
    missing: int = 0
    least: int = 0


class Beginnings:
    """Of the strings that an automaton over code points accepts (`StringSet`)."""

    def __init__(self, moves: Sequence[Moves], accepting: Collection[int]) -> None:
        self._moves = moves
        self._counts = _counts(moves, frozenset(accepting))
        self._start = _At(0)
        self._known: dict[bytes, _At | None] = {}
        self._remembered = 0

    def count(self, begun: bytes) -> int:
        """How many begin so, in UTF-8; MANY stands for all numbers from there on. Surrogates that are no characters count for nothing."""
        at = self._at(begun)
        if at is None:
            return 0
        if not at.missing:
            return self._counts[at.state]
        first = at.bits << 6 * at.missing
        return self._between(at.state, max(first, at.least), min(first + (1 << 6 * at.missing) - 1, _LAST))

    def _at(self, begun: bytes) -> _At | None:
        """None: no text begins so."""
        # Another thread may put an empty one in its place.
        known = self._known
        if self._remembered > REMEMBERED:
            known, self._remembered = {}, 0
            self._known = known
        end = next((length for length in _looked_up(len(begun)) if begun[:length] in known), 0)
        at = known[begun[:end]] if end else self._start
        for length in range(end + 1, len(begun) + 1):
            at = None if at is None else self._after(at, begun[length - 1])
            if length > len(begun) - _NEAR or length % _STEP == 0:
                known[begun[:length]] = at
                self._remembered += length + _OVERHEAD
        return at

    def _after(self, at: _At, byte: int) -> _At | None:
        if at.missing:
            if byte & 0xC0 != 0x80:
                return None
            bits = at.bits << 6 | byte & 0x3F
            return at._replace(bits=bits, missing=at.missing - 1) if at.missing > 1 else _At(self._target(at.state, bits))
        if byte < 0x80:
            return _At(self._target(at.state, byte))
        if byte < 0xC2 or byte > 0xF4:
            return None
        if byte < 0xE0:
            return _At(at.state, byte & 0x1F, 1, 0x80)
        return _At(at.state, byte & 0x0F, 2, 0x800) if byte < 0xF0 else _At(at.state, byte & 0x07, 3, 0x10000)

    def _target(self, state: int, point: int) -> int:
        moves = self._moves[state]
        return moves[bisect_right(moves, point, key=lambda move: move[0]) - 1][1]

    def _between(self, state: int, first: int, last: int) -> int:
        return _sum(self._moves[state], self._counts, first, last)


def _looked_up(length: int) -> Iterator[int]:
    """The lengths of beginnings that may be remembered, the longest first."""
    near = max(0, length - _NEAR)
    return chain(range(length, near, -1), range(near - near % _STEP, 0, -_STEP))


def _sum(moves: Moves, counts: Sequence[int], first: int, last: int) -> int:
    """Over the characters from `first` to `last`."""
    found = 0
    for index, (cut, target) in enumerate(moves):
        end = moves[index + 1][0] - 1 if index + 1 < len(moves) else _LAST
        found += _characters(max(cut, first), min(end, last)) * counts[target]
    return min(MANY, found)


def _characters(first: int, last: int) -> int:
    surrogates = max(0, min(last, _SURROGATES[1]) - max(first, _SURROGATES[0]) + 1)
    return max(0, last - first + 1) - (surrogates if first <= last else 0)


def _counts(moves: Sequence[Moves], accepting: frozenset[int]) -> list[int]:
    """Of each state, how many strings are accepted from there."""
    targets = [{target for _, target in row} for row in moves]
    live = leading(targets, accepting)
    many = endless(targets, live)
    counts = [MANY if state in many else 0 for state in range(len(moves))]
    for state in _inner_first(targets, live - many):
        counts[state] = min(MANY, (state in accepting) + _sum(moves[state], counts, 0, _LAST))
    return counts


def _inner_first(targets: Sequence[set[int]], states: set[int]) -> list[int]:
    """States that lead in no circle, each behind those that it leads to."""
    found: dict[int, None] = {}
    waiting = [(state, False) for state in states]
    while waiting:
        state, is_left = waiting.pop()
        if is_left:
            found[state] = None
        elif state not in found:
            waiting.append((state, True))
            waiting += [(target, False) for target in targets[state] & states if target not in found]
    return list(found)
