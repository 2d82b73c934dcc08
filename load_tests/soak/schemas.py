"""Schemas that nobody else has: as many as one likes, no two alike, each the same one at every call."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from load_tests.corpus.families.building import Schema, flag, formatted, many, number, one_of, record, spelled, text, whole

FEWEST, MOST = 2, 5
"""Members of an object."""
_WORDS = ("amount", "city", "date", "label", "owner", "part", "price", "rank", "state", "total", "unit", "weight")
_LEAVES: tuple[Callable[[Random], Schema], ...] = (
    lambda random: text(random.randrange(4, 17)),
    lambda random: whole(0, random.randrange(9, 10_000)),
    lambda _: number(0, 1000),
    lambda _: flag(),
    lambda _: formatted("date"),
    lambda random: spelled(f"^[A-Z]{{{random.randrange(2, 5)}}}-[0-9]{{{random.randrange(2, 5)}}}$"),
    lambda random: one_of(random.sample(_WORDS, random.randrange(2, 7))),
    lambda random: many(whole(0, 99), 0, random.randrange(2, 5)),
)


def schema(number_: int) -> Schema:
    """Of that number: a record, in which a record may be; the name of its last member is no other one's."""
    random = Random(number_)
    members = _members(random)
    if random.random() < 1 / 3:
        members["inner"] = record(_members(random))
    return record({**members, f"of_{number_}": whole(0, 9)})


def _members(random: Random) -> dict[str, Schema]:
    return {name: random.choice(_LEAVES)(random) for name in random.sample(_WORDS, random.randrange(FEWEST, MOST + 1))}
