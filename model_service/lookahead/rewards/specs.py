"""Rewards as data: `{"type": "concepts", "words": ["dog", "run"]}`, of known fields only and within bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from model_service.errors import InvalidLookahead

MOST_WORDS = 64
MOST_CHARACTERS = 64
MOST_TERMS = 8
MOST_GRAMMARS = 4
MOST_DEPTH = 3
"""Of sums in sums."""
MOST_REWARDS = 16
"""In all sums together."""
MOST_LANGUAGES = 2
"""To read a dictionary takes up to two seconds, and a process holds few (`concepts.LANGUAGES_HELD`)."""

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS)]
Length: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 20)]


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    pass


class ConceptsSpec(_Spec, frozen=True, tag="concepts"):
    """The share of `words` that the text has, in any form that `language` (ISO 639) knows of them."""

    words: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=MOST_WORDS)]
    language: Annotated[str, msgspec.Meta(min_length=2, max_length=3)] = "en"


class LengthSpec(_Spec, frozen=True, tag="length"):
    """1 from `least` to `most` of the unit, and the less the further from there."""

    least: Length = 0
    most: Length | None = None
    unit: Literal["words", "characters"] = "words"


class GrammarSpec(_Spec, frozen=True, tag="grammar"):
    """The share of the text, from its beginning, that a compiled grammar accepts: of those that the request brings, the one of that
    number."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=MOST_GRAMMARS)]


class NamedSpec(_Spec, frozen=True, tag="named"):
    """One that the service's settings have a name for."""

    name: Name


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reward: RewardSpec
    weight: float = 1.0


class SumSpec(_Spec, frozen=True, tag="sum"):
    """The weighted sum of other rewards."""

    terms: Annotated[tuple[Term, ...], msgspec.Meta(min_length=1, max_length=MOST_TERMS)]


RewardSpec: TypeAlias = ConceptsSpec | LengthSpec | GrammarSpec | NamedSpec | SumSpec
RESOLVED = msgspec.json.Decoder(RewardSpec)
"""Several threads convert to it, and while msgspec resolves a type for one of them, it is not there for another (0.22)."""


def parsed(tree: Mapping[str, object]) -> RewardSpec:
    """Raises InvalidLookahead, whose field begins with `reward`."""
    try:
        spec: RewardSpec = msgspec.convert(tree, RewardSpec)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise InvalidLookahead(f"reward{place.rstrip('`')}", message) from None
    except RecursionError:
        raise InvalidLookahead("reward", f"sums stand in sums at most {MOST_DEPTH} deep") from None
    _check(spec, "reward", 0)
    rewards = list(_leaves(spec))
    if len(rewards) > MOST_REWARDS:
        raise InvalidLookahead("reward", f"has {len(rewards)} rewards in its sums, and may have {MOST_REWARDS}")
    if len({reward.language for reward in rewards if isinstance(reward, ConceptsSpec)}) > MOST_LANGUAGES:
        raise InvalidLookahead("reward", f"its concepts may be of {MOST_LANGUAGES} languages")
    return spec


def _leaves(spec: RewardSpec) -> Iterator[RewardSpec]:
    if isinstance(spec, SumSpec):
        for term in spec.terms:
            yield from _leaves(term.reward)
    else:
        yield spec


def _check(spec: RewardSpec, place: str, depth: int) -> None:
    match spec:
        case LengthSpec(least, most) if most is not None and most < max(least, 1):
            raise InvalidLookahead(f"{place}.most", f"must be at least {max(least, 1)}, not {most}")
        case SumSpec(terms):
            if depth == MOST_DEPTH:
                raise InvalidLookahead(place, f"sums stand in sums at most {MOST_DEPTH} deep")
            for number, term in enumerate(terms):
                if not math.isfinite(term.weight):
                    raise InvalidLookahead(f"{place}.terms[{number}].weight", "must be a number")
                _check(term.reward, f"{place}.terms[{number}].reward", depth + 1)
