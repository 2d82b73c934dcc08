"""Decoding without look-ahead, on toy models."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from load_tests.lookahead.driving import log_softmax
from load_tests.lookahead.plain import beam_search, greedy, nucleus
from model_service.lookahead import Stop
from tests.unit.model_service.lookahead.reference import Reference
from tests.unit.model_service.lookahead.toy_languages import END, SIZE, ToyLanguage

STOP = Stop(12, frozenset({END}))


def likelihood(model: ToyLanguage, prompt: tuple[int, ...], text: tuple[int, ...]) -> float:
    return sum(float(log_softmax(model.next(prompt + text[:n]))[token]) for n, token in enumerate(text))


@settings(max_examples=50, deadline=None)
@given(some.integers(0, 1000), some.lists(some.integers(1, SIZE - 1), min_size=2, max_size=4))
def test_greedy_is_the_reference_and_what_narrow_beams_and_nuclei_are(seed: int, starts: list[int]) -> None:
    model, prompts = ToyLanguage.of(seed), [(start,) for start in starts]
    said = greedy(model, prompts, STOP)
    references = [Reference(model.next, model.next, prompt, len, STOP.most, STOP.ends) for prompt in prompts]
    assert said == [reference.greedy() for reference in references]
    assert said == nucleus(model, prompts, STOP, 1e-9, seed)
    assert said == [beam_search(model, prompt, STOP, 1)[0] for prompt in prompts]


@settings(max_examples=50, deadline=None)
@given(some.integers(0, 1000))
def test_beams_as_wide_as_all_texts_find_the_likeliest(seed: int) -> None:
    model, stop = ToyLanguage.of(seed), Stop(2, frozenset({END}))
    text, calls = beam_search(model, (1,), stop, SIZE * SIZE)
    every = [(END,), *((a, b) for a in range(1, SIZE) for b in range(SIZE))]
    assert likelihood(model, (1,), text) / len(text) == max(likelihood(model, (1,), one) / len(one) for one in every)
    assert calls == 1 + (SIZE - 1)


def test_a_nucleus_never_leaves_its_share() -> None:
    model = ToyLanguage.of(7)
    for prompt, text in zip(prompts := [(n % SIZE,) for n in range(60)], nucleus(model, prompts, STOP, 0.5, 1), strict=True):
        for n, token in enumerate(text):
            chances = log_softmax(model.next(prompt + text[:n]))
            assert np.exp(chances[chances > chances[token]]).sum() < 0.5
