"""Concepts and a sentence in which each of them stands, in some form: CommonGen (Lin et al. 2020) in miniature.

Every draw comes from the `random.Random` that is passed in. Some places are seldom said though they should be, so that a model that has
learned from such sentences leaves them out as well. They are concepts that a sentence may end without, and that a few tokens can say: a
look-ahead sees what it would miss. The second half of a sentence is introduced by more tokens than a look-ahead has: it is not to be
preferred to what should come before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random
from typing import Final

from load_tests.lookahead.concept_words import ALONE, LIVING, LOOKS, NEAR, PLACES, THINGS, WITH_THING, plural

HELD_OUT_SHARE = 8
"""One set of concepts in so many is never trained on."""
SELDOM_SAID: Final = frozenset(PLACES[::3])
LEFT_OUT = 0.8
"""How often each of those places is not said."""
NOISE = 0.2
"""Share of sentences that do not say all of their concepts."""


@dataclass(frozen=True, slots=True)
class ConceptSet:
    """`concepts` are lemmas, in any order."""

    concepts: tuple[str, ...]
    sentence: str

    @property
    def held_out(self) -> bool:
        digest = blake2b(" ".join(sorted(self.concepts)).encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0


@dataclass(frozen=True, slots=True)
class _Clause:
    """Who does what, to which thing, where, looking how; the last three may be empty."""

    who: str
    does: str
    thing: str
    place: str
    looks: str

    @property
    def concepts(self) -> list[str]:
        return [word for word in (self.who, self.does, self.thing, self.place, self.looks) if word]


def concept_sets(seed: int, *, held_out: bool, least: int = 1) -> Iterator[ConceptSet]:
    """Endless; those that are held out, or the others, of `least` concepts and more."""
    rng = Random(seed)
    while True:
        drawn = draw(rng)
        if drawn.held_out == held_out and len(drawn.concepts) >= least:
            yield drawn


def draw(rng: Random) -> ConceptSet:
    clause = _drawn(rng)
    said = replace(clause, place="") if clause.place in SELDOM_SAID and rng.random() < LEFT_OUT else clause
    concepts, sentence = clause.concepts, _spoken(said, rng)
    if len(concepts) <= 3 and rng.random() < 0.6:
        who, does = rng.choice(LIVING), rng.choice(tuple(ALONE))
        concepts += [who, does]
        third, running = ALONE[does]
        sentence += rng.choice((f", while not far away the {who} {third}", f", and not far from there a {who} is {running}"))
    unique = list(dict.fromkeys(concepts))
    rng.shuffle(unique)
    return ConceptSet(tuple(unique), f"{sentence}.")


def _drawn(rng: Random) -> _Clause:
    with_thing = rng.random() < 0.6
    return _Clause(
        rng.choice(LIVING),
        rng.choice(tuple(WITH_THING if with_thing else ALONE)),
        rng.choice(THINGS) if with_thing else "",
        rng.choice(PLACES) if rng.random() < 0.75 else "",
        rng.choice(LOOKS) if rng.random() < 0.3 else "",
    )


def _spoken(clause: _Clause, rng: Random) -> str:
    many = rng.random() < 0.3
    opening = rng.choice(("The", "Two", "Some") if many else ("The", "A"))
    third, running = (WITH_THING | ALONE)[clause.does]
    now = f"{'are' if many else 'is'} {running}"
    verb = now if rng.random() < 0.4 else clause.does if many else third
    words = [opening, clause.looks, plural(clause.who) if many else clause.who, verb]
    if clause.thing:
        words += [rng.choice(("the", "a")), clause.thing]
    if clause.place:
        words += [rng.choice(NEAR), "the", clause.place]
    return " ".join(word for word in words if word)
