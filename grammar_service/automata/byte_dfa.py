"""Regexes and choices as deterministic automata over bytes: the language that matchers enforce, read by the same parser."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grammar_service.automata.acyclic import shared_suffixes
from grammar_service.errors import GrammarTooLarge, InvalidGrammar
from grammar_service.regexes.automata.subsets import Moves
from grammar_service.regexes.classes import LAST
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.string_set import StringSet

MAX_STATES = 20_000
"""Of one automaton: 20 MB."""
MAX_CHARACTER_STATES = 4_000
"""Of a regex, before characters become bytes."""
EFFORT = 5_000_000
"""Steps for one regex, of 0.2 to 1.3 µs each."""
_SURROGATES = (0xD800, 0xDFFF)
_LEADS = ((1, range(0xC2, 0xE0), 0x1F, 0x80), (2, range(0xE0, 0xF0), 0x0F, 0x800), (3, range(0xF0, 0xF5), 0x07, 0x10000))
"""How many bytes follow a first byte, which ones those are, their bits that count, and the least code point of that length."""
Piece = tuple[int, int, int]
"""First and last code point, target."""


@dataclass(frozen=True, eq=False)
class ByteDfa:
    """`moves` int32 [states, 256], -1 where no text goes on; `accepting` bool [states]. State 0 is the start, and every other one lies on
    the way to an accepting one. Texts are UTF-8."""

    moves: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.moves)

    def __contains__(self, text: bytes) -> bool:
        state = self.after(0, text)
        return state >= 0 and bool(self.accepting[state])

    def after(self, state: int, text: bytes) -> int:
        """The state behind some bytes, -1 where there is none."""
        for byte in text:
            if state < 0:
                break
            state = int(self.moves[state, byte])
        return state


def of_regex(text: str, effort: int = EFFORT) -> ByteDfa:
    """A regex of kind `regex`, in so many steps. Raises GrammarError as `parse_regex`; UnsupportedGrammar: its automaton is too large;
    InvalidGrammar: nothing matches."""
    parsed = parse_regex(text, Dialect.PYTHON_ASCII).whole()
    return of_strings(StringSet.of_regex(parsed, Effort(effort), MAX_CHARACTER_STATES))


def of_choices(choices: Iterable[str]) -> ByteDfa:
    """Exactly these texts. Raises GrammarTooLarge: they share too little."""
    nodes, accepting = shared_suffixes([choice.encode() for choice in choices])
    if len(nodes) > MAX_STATES:
        raise GrammarTooLarge(f"the choices take more than {MAX_STATES} states")
    moves = np.full((len(nodes), 256), -1, np.int32)
    for state, row in enumerate(nodes):
        for byte, target in row.items():
            moves[state, byte] = target
    return ByteDfa(moves, np.array(accepting))


def of_strings(strings: StringSet) -> ByteDfa:
    """Minimal, since the set is, and since what is left of a character never is what a character begins with. Raises InvalidGrammar: the
    set is empty; GrammarTooLarge."""
    if strings.is_empty:
        raise InvalidGrammar("nothing matches the regex")
    return _Writer(strings).write()


class _Writer:
    """States of the set first, then the places inside of characters; equal places are one."""

    def __init__(self, strings: StringSet) -> None:
        self._moves = strings.moves
        live = sorted(strings.live)
        self._numbers = {state: number for number, state in enumerate(live)}
        self._accepting = [state in strings.accepting for state in live]
        self._rows: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)] * len(live)
        self._inside: dict[tuple[int, tuple[Piece, ...]], int] = {}

    def write(self) -> ByteDfa:
        for state, number in self._numbers.items():
            self._rows[number] = self._row(self._pieces(self._moves[state]))
        accepting = np.zeros(len(self._rows), bool)
        accepting[: len(self._accepting)] = self._accepting
        return ByteDfa(np.stack(self._rows), accepting)

    def _pieces(self, moves: Moves) -> list[Piece]:
        """Without dead states and surrogates."""
        found: list[Piece] = []
        ends = [cut - 1 for cut, _ in moves[1:]] + [LAST]
        for (low, target), high in zip(moves, ends, strict=True):
            if target in self._numbers:
                around = ((low, min(high, _SURROGATES[0] - 1)), (max(low, _SURROGATES[1] + 1), high))
                found += [(first, last, self._numbers[target]) for first, last in around if first <= last]
        return found

    def _row(self, pieces: Sequence[Piece]) -> npt.NDArray[np.int32]:
        row = np.full(256, -1, np.int32)
        for low, high, target in _between(pieces, 0, 0x7F):
            row[low : high + 1] = target
        for following, leads, bits, least in _LEADS:
            for lead in leads:
                base = (lead & bits) << 6 * following
                inside = _between(pieces, max(base, least), base + (1 << 6 * following) - 1)
                if inside:
                    row[lead] = self._place(following, [(low - base, high - base, target) for low, high, target in inside])
        return row

    def _place(self, following: int, pieces: Sequence[Piece]) -> int:
        """The state before `following` more bytes; pieces count from the first character that can still come."""
        key = following, tuple(pieces)
        if key not in self._inside:
            row = np.full(256, -1, np.int32)
            size = 1 << 6 * (following - 1)
            for byte in range(0x40):
                inside = _between(pieces, byte * size, (byte + 1) * size - 1)
                if inside:
                    row[0x80 + byte] = self._target(following - 1, [(a - byte * size, b - byte * size, target) for a, b, target in inside])
            self._inside[key] = len(self._rows)
            self._rows.append(row)
            if len(self._rows) > MAX_STATES:
                raise GrammarTooLarge(f"the regex takes more than {MAX_STATES} states")
        return self._inside[key]

    def _target(self, following: int, pieces: Sequence[Piece]) -> int:
        return self._place(following, pieces) if following else pieces[0][2]


def _between(pieces: Sequence[Piece], low: int, high: int) -> list[Piece]:
    """What lies between two code points, cut off there."""
    begin = max(bisect_right(pieces, low, key=lambda piece: piece[0]) - 1, 0)
    found: list[Piece] = []
    for first, last, target in pieces[begin:]:
        if first > high:
            break
        if last >= low:
            found.append((max(first, low), min(last, high), target))
    return found
