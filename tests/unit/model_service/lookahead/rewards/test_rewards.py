"""What rewards give for texts, and which of them a request may ask for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.errors import InvalidLookahead
from model_service.lookahead.rewards import Aside, Sources, built, parsed
from model_service.lookahead.rewards.concepts import LONGEST_WORD, _lemmatizer
from model_service.lookahead.rewards.grammar import GrammarShare, byte_tokens
from model_service.lookahead.rewards.specs import MOST_CHARACTERS
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer
from tests.unit.model_service.lookahead.rewards.at_once import AtOnce

TOKENIZER = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
BYTES = byte_tokens(TOKENIZER.vocabulary)
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


class Loud:
    """More for more exclamation marks."""

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float(text.count("!")) for text in texts]


def compiled(pattern: str, backend: str = "xgrammar") -> CompiledGrammar:
    library = backend_named(backend)
    return library.load(library.compile(GrammarSpec(GrammarKind.REGEX, pattern), TOKENIZER).data, TOKENIZER)


def reward(**spec: object) -> AtOnce:
    return AtOnce(
        built(parsed(spec), Sources(lambda _: compiled(DATE), BYTES, {"loud": Aside(Loud(), asyncio.to_thread)}, asyncio.to_thread))
    )


def test_concepts_are_covered_in_any_form() -> None:
    concepts = reward(type="concepts", words=["dog", "Run", "stage"])
    assert concepts.score(["", "The dogs", "Two dogs ran.", "A DOG running on stages"]) == [0, 1 / 3, 2 / 3, 1]


def test_concepts_are_whole_words_and_may_have_several() -> None:
    assert reward(type="concepts", words=["cat"]).score(["concatenate", "scat", "cat"]) == [0, 0, 1]
    assert reward(type="concepts", words=["tall man"]).score(["tall men", "a man, tall", "man tall"]) == [1, 0, 0]


def test_concepts_of_other_languages() -> None:
    assert reward(type="concepts", words=["Haus"], language="de").score(["Die Häuser", "Die Hose"]) == [1, 0]
    assert reward(type="concepts", words=["gato"], language="es").score(["dos gatos"]) == [1]


def test_length_is_full_within_its_bounds_and_falls_outside() -> None:
    assert reward(type="length", least=2, most=4).score(["", "a", "a b", "a b c d", "a b c d e f g h"]) == [0, 0.5, 1, 1, 0.5]
    assert reward(type="length", least=4, unit="characters").score(["ab", "abcd" * 99]) == [0.5, 1]
    assert reward(type="length").score([""]) == [1]


def test_grammar_is_the_accepted_share() -> None:
    assert reward(type="grammar", number=0).score(["", "2026", "2026-11-23", "2026/11/23", "x"]) == [1, 1, 1, 0.4, 0]


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
@settings(max_examples=60, deadline=None)
@given(some.lists(some.text(alphabet="01-é", max_size=14), min_size=1, max_size=8))
def test_what_was_scored_before_does_not_matter(backend: str, texts: list[str]) -> None:
    grammar = compiled("(01|é-?)*0", backend)
    together = GrammarShare(grammar, BYTES).score(texts)
    assert together == [GrammarShare(grammar, BYTES).score([text])[0] for text in texts]
    assert all(0 <= share <= 1 for share in together)


def test_a_long_way_back_starts_over() -> None:
    share = GrammarShare(compiled("[ab]*"), BYTES)
    assert share.score(["a" * 700, "ab", "a" * 300 + "x", ""]) == [1, 1, 300 / 301, 1]


def test_bytes_without_a_token_are_not_accepted() -> None:
    only_a: list[int | None] = [None] * 256
    only_a[ord("a")] = BYTES[ord("a")]
    assert GrammarShare(compiled("[ab]*"), only_a).score(["aab"]) == [2 / 3]


def test_sums_and_names() -> None:
    spec = {
        "type": "sum",
        "terms": [{"reward": {"type": "named", "name": "loud"}, "weight": 2}, {"reward": {"type": "length", "least": 2}}],
    }
    assert reward(**spec).score(["!", "a b !!"]) == [2.5, 5]


def nested(depth: int) -> dict[str, object]:
    spec: dict[str, object] = {"type": "length"}
    for _ in range(depth):
        spec = {"type": "sum", "terms": [{"reward": spec}]}
    return spec


def test_the_rewards_of_a_sum_and_their_languages_are_bounded() -> None:
    def of(*terms: dict[str, object]) -> dict[str, object]:
        return {"type": "sum", "terms": [{"reward": term} for term in terms]}

    def about(language: str) -> dict[str, object]:
        return {"type": "concepts", "words": ["x"], "language": language}

    length: dict[str, object] = {"type": "length"}
    full = of(*[length] * 8)
    assert parsed(of(full, full))
    with pytest.raises(InvalidLookahead, match="has 17 rewards"):
        parsed(of(full, full, length))
    assert parsed(of(about("en"), about("de"), about("en")))
    with pytest.raises(InvalidLookahead, match="2 languages"):
        parsed(of(about("en"), of(about("de"), about("fr"))))


def test_words_that_no_dictionary_has_are_not_held() -> None:
    concepts = reward(type="concepts", words=["dog", "x" * (MOST_CHARACTERS)])
    held = _lemmatizer()._cached_lemmatize.cache_info().currsize
    assert concepts.score([f"{'y' * length} dogs" for length in range(LONGEST_WORD + 1, LONGEST_WORD + 50)]) == [0.5] * 49
    assert _lemmatizer()._cached_lemmatize.cache_info().currsize <= held + 1


def test_sums_in_sums_are_bounded() -> None:
    assert reward(**nested(3)).score(["a"]) == [1]
    for depth in (4, 20_000):
        with pytest.raises(InvalidLookahead, match="at most 3 deep"):
            parsed(nested(depth))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"type": "python", "code": "1"}, "reward.type"),
        ({"words": ["a"]}, "reward"),
        ({"type": "concepts", "words": []}, "reward.words"),
        ({"type": "concepts", "words": ["a"] * 65}, "reward.words"),
        ({"type": "concepts", "words": ["a", "…"]}, "reward.words[1]"),
        ({"type": "concepts", "words": ["a"], "language": "xx"}, "reward.language"),
        ({"type": "concepts", "words": ["a"], "lang": "en"}, "reward"),
        ({"type": "length", "least": -1}, "reward.least"),
        ({"type": "length", "least": 3, "most": 2}, "reward.most"),
        ({"type": "length", "most": 0}, "reward.most"),
        ({"type": "grammar", "number": 4}, "reward.number"),
        ({"type": "named", "name": "quiet"}, "reward.name"),
        ({"type": "sum", "terms": []}, "reward.terms"),
        ({"type": "sum", "terms": [{"reward": {"type": "named", "name": "quiet"}}]}, "reward.terms[0].reward.name"),
        ({"type": "sum", "terms": [{"reward": {"type": "length"}, "weight": math.inf}]}, "reward.terms[0].weight"),
    ],
)
def test_what_is_no_reward_is_refused_with_its_field(spec: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidLookahead) as refused:
        reward(**spec)
    assert refused.value.field == field
