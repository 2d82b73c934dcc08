"""One thing made larger and larger: optional members, values, length bounds, depth, width."""

from __future__ import annotations

import random

from load_tests.corpus.families.building import Schema, flag, many, number, one_of, record, text, whole

_SYLLABLES = (
    "al",
    "be",
    "cor",
    "da",
    "el",
    "fi",
    "gra",
    "ha",
    "in",
    "jo",
    "ka",
    "lu",
    "mo",
    "ne",
    "or",
    "pa",
    "qui",
    "ra",
    "so",
    "ti",
    "ul",
    "ve",
)


def scale(seed: int) -> dict[str, Schema]:
    """Schemas by name; the same for the same seed."""
    words = _Words(random.Random(seed))
    return {
        **{f"form_{count:03}_optional": _form(words, count) for count in (20, 40, 60, 100, 150)},
        **{f"enum_{count:04}": record({"value": one_of(words.take(count))}) for count in (100, 300, 1000)},
        "enums_5_of_0500": record({name: one_of(words.take(500)) for name in words.take(5)}),
        **{f"text_up_to_{most:04}": record({"note": text(most)}) for most in (10, 20, 30, 50, 200, 2000)},
        "texts_3_up_to_0012": record({name: text(12) for name in words.take(3)}),
        "texts_4_up_to_0010": record({name: text(most, 1) for name, most in zip(words.take(4), (8, 6, 10, 5), strict=True)}),
        **{f"depth_{levels:02}": _deep(words, levels) for levels in (4, 16)},
        **{f"wide_{count:03}_required": record(_members(words, count)) for count in (30, 100)},
        "bounded_lists": record({name: many(whole(0, 1000), 1, 20 * index) for index, name in enumerate(words.take(4), 1)}),
        "bounded_numbers": record({name: number(-37.5 * index, 991.25 * index) for index, name in enumerate(words.take(12), 1)}),
    }


class _Words:
    """Made-up words, never one twice."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._said: set[str] = set()

    def take(self, count: int) -> list[str]:
        return [self._new() for _ in range(count)]

    def pick(self, choices: list[Schema]) -> Schema:
        return self._chance.choice(choices)

    def _new(self) -> str:
        while (word := "".join(self._chance.choices(_SYLLABLES, k=self._chance.randint(2, 4)))) in self._said:
            pass
        self._said.add(word)
        return word


def _members(words: _Words, count: int) -> dict[str, Schema]:
    kinds = [text(), whole(), number(), flag(), one_of(["yes", "no", "unknown"]), many(text())]
    return {name: words.pick(kinds) for name in words.take(count)}


def _form(words: _Words, optional: int) -> Schema:
    return record(_members(words, 3), _members(words, optional))


def _deep(words: _Words, levels: int) -> Schema:
    inner: Schema = text()
    for name in words.take(levels):
        inner = record({name: inner}, {"note": text()})
    return inner
