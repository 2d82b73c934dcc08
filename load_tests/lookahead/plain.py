"""Decoding without look-ahead: greedy, beam search, nucleus sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_tests.lookahead.driving import LanguageModel, likeliest, log_softmax
from model_service.lookahead import Stop
from model_service.lookahead.instructions import Tokens


def greedy(model: LanguageModel, prompts: Sequence[Tokens], stop: Stop) -> list[Tokens]:
    """All prompts together."""
    said: list[Tokens] = [()] * len(prompts)
    while live := [n for n, text in enumerate(said) if not stop.reached(text)]:
        for n, logits in zip(live, model.logits([prompts[n] + said[n] for n in live], [1] * len(live)), strict=True):
            said[n] += likeliest(logits[0], 1)
    return said


def nucleus(model: LanguageModel, prompts: Sequence[Tokens], stop: Stop, share: float, seed: int) -> list[Tokens]:
    """Draws of the likeliest tokens that have `share` of the probability together (Holtzman et al. 2020)."""
    said: list[Tokens] = [()] * len(prompts)
    chance = np.random.default_rng(seed)
    while live := [n for n, text in enumerate(said) if not stop.reached(text)]:
        for n, logits in zip(live, model.logits([prompts[n] + said[n] for n in live], [1] * len(live)), strict=True):
            probability = np.exp(log_softmax(logits[0]))
            order = np.argsort(-probability, kind="stable")
            before = np.cumsum(probability[order]) - probability[order]
            kept = order[before < share]
            said[n] += (int(chance.choice(kept, p=probability[kept] / probability[kept].sum())),)
    return said


@dataclass(frozen=True, slots=True)
class _Beam:
    text: Tokens
    score: float

    @property
    def mean(self) -> float:
        return self.score / max(1, len(self.text))


def beam_search(model: LanguageModel, prompt: Tokens, stop: Stop, width: int) -> tuple[Tokens, int]:
    """The likeliest text a token that was found, and the calls it took: one a token of a beam."""
    beams, calls = [_Beam((), 0.0)], 0
    done: list[_Beam] = []
    while beams and len(done) < width:
        calls += len(beams)
        grown: list[_Beam] = []
        for beam, logits in zip(beams, model.logits([prompt + one.text for one in beams], [1] * len(beams)), strict=True):
            chances = log_softmax(logits[0])
            grown += [_Beam((*beam.text, token), beam.score + float(chances[token])) for token in likeliest(logits[0], width)]
        grown.sort(key=lambda beam: -beam.score)
        done += [beam for beam in grown[:width] if stop.reached(beam.text)]
        beams = [beam for beam in grown[:width] if not stop.reached(beam.text)]
    return max(done, key=lambda beam: beam.mean).text, calls
