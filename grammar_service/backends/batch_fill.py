"""Masks of many matchers at once, filled by the libraries in threads of their own, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Sequence

import llguidance
import numpy as np
import numpy.typing as npt
import torch
import xgrammar

from grammar_service.backends.channels.harmony import HarmonyMatcher
from grammar_service.backends.layer import Layer
from grammar_service.backends.llguidance.matcher import LlguidanceMatcher
from grammar_service.backends.protocol import Matcher
from grammar_service.backends.xgrammar.matcher import XgrammarMatcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer


class BatchFiller:
    """For one thread, and matchers of one vocabulary; `threads` are what either library may use."""

    def __init__(self, tokenizer: GrammarTokenizer, threads: int) -> None:
        self._xgrammar = xgrammar.BatchGrammarMatcher(max_threads=threads)
        self._llguidance = llguidance.LLExecutor(num_threads=threads)
        self._last_word, used = divmod(tokenizer.vocab_size, 32)
        self._last_bits = np.int32((1 << used) - 1)

    def fill(self, matchers: Sequence[Matcher], bitmask: torch.Tensor, rows: Sequence[int]) -> None:
        """As if `matchers[i].fill(bitmask, rows[i])` for each i; the bitmask is contiguous int32 on the CPU. Not the same matcher twice."""
        ours: list[tuple[XgrammarMatcher, int]] = []
        theirs: list[tuple[LlguidanceMatcher, int]] = []
        around: list[tuple[Layer, int]] = []
        for matcher, row in zip(matchers, rows, strict=True):
            layers, inner = _layers(matcher)
            asks_library = not inner.is_terminated() and not (layers and layers[-1].is_filled)
            if asks_library and isinstance(inner, XgrammarMatcher):
                ours.append((inner, row))
            elif asks_library and isinstance(inner, LlguidanceMatcher):
                theirs.append((inner, row))
            else:
                matcher.fill(bitmask, row)
                continue
            around += [(layer, row) for layer in layers]
        self._fill_xgrammar(ours, bitmask)
        self._fill_llguidance(theirs, bitmask)
        for layer, row in around:
            layer.bound(bitmask, row)

    def _fill_xgrammar(self, matchers: list[tuple[XgrammarMatcher, int]], bitmask: torch.Tensor) -> None:
        if not matchers:
            return
        rows = [row for _, row in matchers]
        self._xgrammar.batch_fill_next_token_bitmask([matcher.library for matcher, _ in matchers], bitmask, rows)
        if self._last_bits:
            masks: npt.NDArray[np.int32] = bitmask.numpy()
            masks[rows, self._last_word] &= self._last_bits
        for matcher, row in matchers:
            matcher.mend(bitmask, row)

    def _fill_llguidance(self, matchers: list[tuple[LlguidanceMatcher, int]], bitmask: torch.Tensor) -> None:
        if not matchers:
            return
        row_bytes = bitmask.shape[1] * bitmask.element_size()
        pairs = [(matcher.library, row) for matcher, row in matchers]
        self._llguidance.unsafe_compute_mask_ptr(pairs, bitmask.data_ptr(), row_bytes, bitmask.shape[0])
        masks: npt.NDArray[np.int32] = bitmask.numpy()
        for matcher, row in matchers:
            matcher.mend(masks[row])


def has_failed(matcher: Matcher) -> bool:
    """Whether llguidance reports an error for the matcher. It raises nothing and returns an empty mask."""
    _, inner = _layers(matcher)
    return isinstance(inner, LlguidanceMatcher) and bool(inner.library.is_error())


def _layers(matcher: Matcher) -> tuple[list[Layer], Matcher]:
    """The matchers around a library's own, from the inside out, and that one."""
    layers: list[Layer] = []
    while isinstance(matcher, Layer | HarmonyMatcher):
        if isinstance(matcher, Layer):
            layers.insert(0, matcher)
        matcher = matcher.inner
    return layers, matcher
