"""Bounds on what a grammar's masks may take: all requests of an engine wait for each of them.

The libraries have no bound of their own, or one that lets a mask take a second. Of schemas that people use, a mask takes up to 2 ms with a
vocabulary of 131,072 tokens; of an ambiguous grammar of sixty bytes it takes 57 ms after ten characters, and grows with their square.
"""

from __future__ import annotations

import time
from random import Random

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends.protocol import CompiledGrammar
from grammar_service.errors import GrammarTooLarge
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

SLOW_S = 0.02
"""Processor time."""
MOST_SLOW, MOST_SLOW_S, HOPELESS_S = 3, 0.1, 1.0
"""Several, since one alone may be the machine's fault, unless it takes as long as no machine makes it."""
WALKS, STEPS = 2, 48
"""A step takes about 0.3 ms with a vocabulary of 131,072 tokens."""


class MaskTime:
    """What the masks of one request have taken."""

    def __init__(self) -> None:
        self._number = 0
        self._seconds = 0.0

    def add(self, seconds: float) -> bool:
        """Whether it is too much, with one more mask of so much processor time."""
        if seconds > SLOW_S:
            self._number += 1
            self._seconds += seconds
        return self._seconds > HOPELESS_S or (self._number >= MOST_SLOW and self._seconds > MOST_SLOW_S)


def check_masks(grammar: CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
    """Walk through the grammar at random. Run it where a deadline and a memory limit hold. Raises GrammarTooLarge: its masks take long."""
    chance, mask = Random(0), torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    row: npt.NDArray[np.int32] = mask[0].numpy()
    for _ in range(WALKS):
        matcher, taken = grammar.matcher(None, 0), MaskTime()
        for _ in range(STEPS):
            began = time.thread_time()
            matcher.fill(mask, 0)
            if taken.add(time.thread_time() - began):
                raise GrammarTooLarge(f"a mask of the grammar takes more than {SLOW_S * 1000:g} ms of an engine: it may be ambiguous")
            allowed = np.setdiff1d(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")), tokenizer.stop_token_ids)
            if not len(allowed) or not matcher.accept(int(chance.choice(allowed))):
                break
