"""How many different masks a step has, with the tokenizer's rows and without: those that are the same are carried once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random
from typing import Any

import numpy as np
import torch

from grammar_service.backends import Matcher
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Answering
from load_tests.canonical.answers.choosers import COMMON, Choosers
from load_tests.canonical.answers.languages import everyday_specs, loaded

PART = "step rows"
SCHEMAS = ("business-invoice", "business-person", "business-sentiment", "records-patient", "records-weather_report", "tools-tool_tag_5")
REQUESTS, ANSWERS, STEPS = 32, 32, 64
Masks = tuple[bytes, bytes]
"""Digests of the grammar's own mask and of the canonical one."""


def step_rows(tokenizer: GrammarTokenizer, texts: Sequence[str], seed: int) -> Iterator[dict[str, Any]]:
    """Of each schema, the mean over STEPS steps, in which REQUESTS answers stand anywhere."""
    answering, choose, chance = Answering(tokenizer), Choosers(tokenizer, texts, seed).by_name()[COMMON], Random(seed)
    for name, spec in everyday_specs(seed).items():
        if name.partition(",")[0] not in SCHEMAS:
            continue
        grammar, courses = loaded(spec, tokenizer), list[list[Masks]]()
        for _ in range(ANSWERS):
            seen = SeenMasks(tokenizer.vocab_size)
            answering.answer(grammar, choose, seen.look)
            courses.append(seen.found)
        steps = [[chance.choice(chance.choice(courses)) for _ in range(REQUESTS)] for _ in range(STEPS)]
        plain, own = (float(np.mean([len({masks[side] for masks in step}) for step in steps])) for side in (0, 1))
        yield {"part": PART, "case": name, "requests": REQUESTS, "plain": round(plain, 1), "canonical": round(own, 1)}


class SeenMasks:
    """Of one answer, in `found`."""

    def __init__(self, vocab_size: int) -> None:
        self._mask = torch.zeros(1, (vocab_size + 31) // 32, dtype=torch.int32)
        self.found: list[Masks] = []

    def look(self, matcher: Matcher) -> None:
        if isinstance(matcher, CanonicalMatcher):
            matcher.inner.fill(self._mask, 0)
            plain = self._digest()
            matcher.bound(self._mask, 0)
            self.found.append((plain, self._digest()))

    def _digest(self) -> bytes:
        return blake2b(self._mask.numpy().tobytes(), digest_size=16).digest()
