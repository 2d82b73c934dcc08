"""What NFC makes of characters side by side, asked of the tokenizers' own engine: no two libraries have the same Unicode.

A text is in NFC exactly if each of its characters is, marks between two starters come in the order of their combining classes, and nothing
composes with the starter before it. A starter composes only right behind that one, a mark also behind marks of lower classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from tokenizers import normalizers

from grammar_service.canonical.pretokenizers.character_classes import POINTS, all_characters

_COMPOSED, _APART = normalizers.NFC(), normalizers.NFD()
_LAST_MARK, _FIRST_MARK = "\u0345", "\u0334"
"""Of the highest combining class and the lowest: around a starter they stay."""
_SYLLABLES, _ENDINGS = slice(0xAC00, 0xD7A4), 28
"""Korean ones, of which one in 28 has no ending yet: the standard counts them so, and asking of each would take a second."""
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class NfcClasses:
    """Characters that NFC does not tell apart are one number from 0. `number_of` int16 [code points], -1 for surrogates. Of each class
    `changes` (bool): the character is not in NFC by itself; `rank` (int64): the place of its combining class among all, 0 for starters;
    `wants` (int64): which set of characters composes with it, 0: the empty one. `composes` bool [sets, classes]."""

    number_of: npt.NDArray[np.int16]
    changes: npt.NDArray[np.bool_]
    rank: npt.NDArray[np.int64]
    wants: npt.NDArray[np.int64]
    composes: npt.NDArray[np.bool_]

    @classmethod
    def of_engine(cls) -> NfcClasses:
        """Takes half a second, once in a process."""
        return _classes()


@lru_cache(maxsize=1)
def _classes() -> NfcClasses:
    moved = _moved()
    apart = dict(zip(moved, _each(_APART, moved), strict=True))
    changes = {char for char, composed in zip(moved, _each(_COMPOSED, moved), strict=True) if char != composed}
    ranks = _ranks([char for char in moved if char not in changes and apart[char] == char])
    sets = _composing({char: parts for char, parts in apart.items() if char not in changes and char not in ranks})
    numbers = {wanted: number for number, wanted in enumerate(dict.fromkeys([_NOTHING, *sets.values()]))}
    number_of = np.zeros(POINTS, np.int16)
    known: dict[tuple[bool, int, int, tuple[int, ...]], int] = {(False, 0, 0, ()): 0}
    for char in {*moved, *sets, *(char for wanted in numbers for char in wanted)}:
        wanted_by = tuple(number for wanted, number in numbers.items() if char in wanted)
        key = (char in changes, ranks.get(char, 0), numbers[sets.get(char, _NOTHING)], wanted_by)
        number_of[ord(char)] = known.setdefault(key, len(known))
    syllables = number_of[_SYLLABLES].reshape(-1, _ENDINGS)
    syllables[:, 0], syllables[:, 1:] = syllables[0, 0], syllables[0, 1]
    number_of[0xD800:0xE000] = -1
    changing, rank, wants, wanted = zip(*known, strict=True)
    composes = np.array([[number in by for by in wanted] for number in range(len(numbers))], bool)
    return NfcClasses(number_of, np.array(changing, bool), np.array(rank, np.int64), np.array(wants, np.int64), composes)


def _moved() -> list[str]:
    """The marks, and all that comes apart."""
    found: list[str] = []
    for text in all_characters():
        between = {char: _LAST_MARK + char + _FIRST_MARK for char in text if char != "\n"}
        found += [char for char, got in zip(between, _each(_APART, [*between.values()]), strict=True) if got != between[char]]
    return found


def _ranks(marks: list[str]) -> dict[str, int]:
    """From 1, equal for marks of one combining class: those are left in the order in which they come."""
    ordered = _APART.normalize_str("".join(marks))
    swapped = [after + before for before, after in pairwise(ordered)]
    higher = [got != pair for pair, got in zip(swapped, _each(_APART, swapped), strict=True)]
    return dict(zip(ordered, np.cumsum([1, *higher]).tolist(), strict=True))


def _composing(composed: dict[str, str]) -> dict[str, frozenset[str]]:
    """The characters that compose with each starter; of Korean syllables the first two are enough. `composed`: those that come apart, and
    stay together, with their parts."""
    following = sorted({part for parts in composed.values() for part in parts[1:]})
    starters = {*composed, *(parts[0] for parts in composed.values())} - {*map(chr, range(POINTS)[_SYLLABLES][2:])}
    return {one: frozenset(_composing_with(one, following)) for one in starters}


def _composing_with(starter: str, following: Sequence[str]) -> list[str]:
    pairs = [starter + char for char in following]
    return [char for char, pair, got in zip(following, pairs, _each(_COMPOSED, pairs), strict=True) if got != pair]


def _each(form: normalizers.Normalizer, texts: Sequence[str]) -> list[str]:
    """Of texts without line ends, which nothing moves across."""
    return form.normalize_str("\n".join(texts)).split("\n") if texts else []
