"""The experiment's sentences: reproducible, split for good, and judged by the reward that look-aheads maximise."""

from __future__ import annotations

from itertools import islice

import pytest

from load_tests.lookahead.concept_sets import NOISE, SELDOM_SAID, concept_sets
from load_tests.lookahead.concept_words import ALONE, LIVING, LOOKS, PLACES, THINGS, WITH_THING, plural
from model_service.lookahead.rewards.concepts import Concepts


def test_a_seed_fixes_the_sets() -> None:
    assert list(islice(concept_sets(1, held_out=False), 50)) == list(islice(concept_sets(1, held_out=False), 50))
    assert list(islice(concept_sets(1, held_out=False), 50)) != list(islice(concept_sets(2, held_out=False), 50))


def test_no_set_that_is_held_out_is_trained_on() -> None:
    trained = {frozenset(one.concepts) for one in islice(concept_sets(1, held_out=False), 3000)}
    held = {frozenset(one.concepts) for one in islice(concept_sets(1, held_out=True, least=3), 200)}
    assert not trained & held
    assert min(map(len, held)) == 3


@pytest.mark.parametrize(
    ("lemma", "forms"),
    [
        *((noun, (noun, plural(noun))) for noun in LIVING),
        *((word, (word,)) for word in (*THINGS, *PLACES, *LOOKS)),
        *((verb, (verb, *forms)) for verb, forms in (WITH_THING | ALONE).items()),
    ],
)
def test_the_reward_knows_every_form(lemma: str, forms: tuple[str, ...]) -> None:
    assert Concepts([lemma], "en").score([f"The {form}." for form in forms]) == [1] * len(forms)


def test_one_sentence_in_five_does_not_say_its_place_and_every_other_says_all() -> None:
    sets = list(islice(concept_sets(4, held_out=False), 1500))
    missed = [{word for word in one.concepts if Concepts([word], "en").score([one.sentence]) != [1]} for one in sets]
    short = sum(bool(words) for words in missed) / len(sets)
    assert NOISE - 0.04 < short < NOISE + 0.04
    assert all(words <= SELDOM_SAID for words in missed)
