"""Makes rewards of what requests say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grammar_service.backends import CompiledGrammar
from model_service.errors import InvalidLookahead
from model_service.lookahead.rewards.concepts import Concepts
from model_service.lookahead.rewards.grammar import GrammarShare
from model_service.lookahead.rewards.length import Length
from model_service.lookahead.rewards.reward import Aside, Run, Scoring
from model_service.lookahead.rewards.specs import ConceptsSpec, GrammarSpec, LengthSpec, NamedSpec, RewardSpec, SumSpec
from model_service.lookahead.rewards.weighted import WeightedSum


@dataclass(frozen=True, slots=True)
class Sources:
    """What rewards are made with: the request's grammars by their number, the token of each byte, the rewards that settings name, and who
    runs what takes long."""

    grammar: Callable[[int], CompiledGrammar]
    byte_tokens: Sequence[int | None]
    named: Mapping[str, Scoring]
    run: Run


def built(spec: RewardSpec, sources: Sources, place: str = "reward") -> Scoring:
    """For one request: a reward may keep a state between texts. Raises InvalidLookahead, and what `sources.grammar` raises."""
    try:
        return _built(spec, sources, place)
    except InvalidLookahead as error:
        raise error if error.field.startswith(place) else error.below(place) from None


def _built(spec: RewardSpec, sources: Sources, place: str) -> Scoring:
    match spec:
        case ConceptsSpec(words, language):
            return Aside(Concepts(words, language), sources.run)
        case LengthSpec(least, most, unit):
            return Aside(Length(least, most, unit), sources.run)
        case GrammarSpec(number):
            return Aside(GrammarShare(sources.grammar(number), sources.byte_tokens), sources.run)
        case NamedSpec(name):
            return _named(name, sources.named)
        case SumSpec(terms):
            rewards = [built(term.reward, sources, f"{place}.terms[{number}].reward") for number, term in enumerate(terms)]
            return WeightedSum([(term.weight, reward) for term, reward in zip(terms, rewards, strict=True)])


def _named(name: str, named: Mapping[str, Scoring]) -> Scoring:
    if name not in named:
        raise InvalidLookahead("name", f"there is no reward {name!r}; there are: {', '.join(sorted(named)) or 'none'}")
    return named[name]
