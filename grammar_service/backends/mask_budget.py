"""Limits the processor time of token masks: every request in an engine step waits for the slowest mask.

xgrammar has no such limit. With a vocabulary of 131,072 tokens, the slowest mask of the schemas in `load_tests/corpus` takes 2 ms. An
ambiguous grammar of 60 bytes takes 57 ms after ten characters, and the time grows with the square of the length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends.protocol import CompiledGrammar
from grammar_service.canonical.packed_rows import bits_of
from grammar_service.errors import GrammarTooLarge
from grammar_service.own_memory import TouchedMemory
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

SLOW_MASK_S = 0.02
"""Seconds of processor time that make a mask slow."""
MAX_SLOW_MASKS, MAX_SLOW_S, MAX_STALL_S = 3, 0.1, 1.0
"""A request ends after three slow masks of more than 0.1 s in total, or when its slow masks total more than 1 s. One slow mask alone may be
caused by the machine."""
STALL_SHARE = 0.01
"""Of the time that passes may be spent on slow masks of one grammar, besides MAX_STALL_S."""
SEARCH_RESERVE_S, SEARCH_S = 0.1, 0.002
"""Seconds that a request may have spent in excess of what its searches may take: so much each, and so much for each token that is found,
which saves a forward."""
WALKS, STEPS = 2, 48
"""Of one trial. A step takes about 0.3 ms with a vocabulary of 131,072 tokens."""


class MaskTimeBudget:
    """Accumulates the processor time of the slow masks of one request."""

    def __init__(self) -> None:
        self._number = 0
        self._seconds = 0.0

    def spend(self, seconds: float) -> bool:
        """Records one mask. Returns whether the budget is exceeded."""
        if seconds > SLOW_MASK_S:
            self._number += 1
            self._seconds += seconds
        return self._seconds > MAX_STALL_S or (self._number >= MAX_SLOW_MASKS and self._seconds > MAX_SLOW_S)


class StallBudget:
    """Limits the processor time of the slow masks of all requests under one grammar, any of which may be slow once: to a part of the time
    that passes, which machines cause themselves, and a reserve."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left_s = MAX_STALL_S
        self._at = clock()

    def spend(self, seconds: float) -> bool:
        """Records one mask. Returns whether the budget is exceeded."""
        if seconds > SLOW_MASK_S:
            now = self._clock()
            self._left_s = min(MAX_STALL_S, self._left_s + STALL_SHARE * (now - self._at)) - seconds
            self._at = now
        return self._left_s < 0


class Effort(TouchedMemory):
    """The processor time of this thread, and the memory that it is the first to touch, from the making of the object on."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        super().__init__()
        self._began = time.thread_time()

    def spent(self) -> tuple[float, int]:
        """Seconds and bytes up to now."""
        return time.thread_time() - self._began, self.bytes()


class SearchBudget:
    """Limits the processor time that one request spends on finding forced tokens, in proportion to the tokens that it finds.

    A search takes about 0.3 ms with a vocabulary of 131,072 tokens. With a hostile grammar it takes hundreds of milliseconds
    and finds nothing.
    """

    def __init__(self) -> None:
        self._left_s = SEARCH_RESERVE_S

    @property
    def is_spent(self) -> bool:
        return self._left_s < 0

    def spend(self, seconds: float, found: int) -> None:
        """Records one search, and how many tokens it has found."""
        self._left_s = min(SEARCH_RESERVE_S, self._left_s + SEARCH_S * (1 + found) - seconds)


def check_mask_times(grammar: CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
    """Generate random text with the grammar and measure its masks. Run this where a deadline and a memory limit apply.

    Raises:
        GrammarTooLarge: the masks exceed the budget of a request.
    """
    chance, mask = Random(0), torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    row: npt.NDArray[np.int32] = mask[0].numpy()
    stops = bits_of(tokenizer.stop_token_ids)
    for _ in range(WALKS):
        matcher, budget = grammar.matcher(None, 0), MaskTimeBudget()
        for _ in range(STEPS):
            began = time.thread_time()
            matcher.fill(mask, 0)
            taken_s = time.thread_time() - began
            for word, bit in stops:
                row[word] &= ~bit
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            began = time.thread_time()
            goes_on = bool(len(allowed)) and matcher.accept(int(chance.choice(allowed)))
            if budget.spend(taken_s + time.thread_time() - began):
                raise GrammarTooLarge(f"a mask of the grammar takes more than {SLOW_MASK_S * 1000:g} ms of an engine: it may be ambiguous")
            if not goes_on:
                break
