"""Long documents about one city each, in which a few sentences state what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from random import Random

from model_service.embedded import vocabulary as words

_FILLERS = (
    "{street} Street is known for its {item} makers, and on {street2} Road one finds a {job}.",
    "The {kind} on {topic} was hosted by {company} in {month}, and guests came from {country}.",
    "{person} lives near {street} Lane, works as a {job} and speaks {language}.",
    "In {month} the market sells every {item}, mostly in {color}.",
    "A {color} house on {street} Avenue belongs to {person}, who collects one {item} after another.",
    "{company} has an office on {street} Street with {number} employees.",
)


def city_guide(rng: Random, length: Callable[[str], int], tokens: int) -> str:
    """About `tokens` tokens by `length`, never more; the facts stand at random places of the text."""
    facts = _facts(rng)
    room = tokens - length(" ".join(facts))
    sentences = [*_within(_fillers(rng), length, room), *facts]
    rng.shuffle(sentences)
    return " ".join(sentences)


def _within(sentences: Iterator[str], length: Callable[[str], int], room: int) -> Iterator[str]:
    used = 0

    def fits(sentence: str) -> bool:
        nonlocal used
        used += length(f" {sentence}")
        return used <= room

    return takewhile(fits, sentences)


def _facts(rng: Random) -> list[str]:
    city, country = rng.choice(words.CITIES), rng.choice(words.COUNTRIES)
    landmarks = [f"{street} {rng.choice(('Tower', 'Palace', 'Garden'))}" for street in rng.sample(words.STREETS, 3)]
    return [
        f"This is a guide to {city}.",
        f"{city} lies in {country}, at {rng.randint(10, 65)}.{rng.randint(10, 99)} north.",
        f"The population is {rng.randint(20_000, 5_000_000)}.",
        *(f"Every visitor should see {landmark}." for landmark in landmarks),
    ]


def _fillers(rng: Random) -> Iterator[str]:
    while True:
        yield rng.choice(_FILLERS).format(
            street=rng.choice(words.STREETS),
            street2=rng.choice(words.STREETS),
            item=rng.choice(words.ITEMS),
            job=rng.choice(words.JOBS),
            kind=rng.choice(words.EVENT_KINDS).lower(),
            topic=rng.choice(words.TOPICS),
            company=rng.choice(words.COMPANIES),
            month=rng.choice(words.MONTHS),
            country=rng.choice(words.COUNTRIES),
            person=f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}",
            language=rng.choice(words.LANGUAGES),
            color=rng.choice(words.COLORS),
            number=rng.randint(2, 900),
        )
