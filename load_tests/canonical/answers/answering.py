"""One answer, as an engine makes it under a canonical grammar (`model_service/engine/core/canonical_answers.py`), without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.canonical.packed_rows import Row
from grammar_service.segments import MOST_TAIL, Segment, Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MOST_REDRAWS = 64
"""At one place, as in an engine."""
MOST_FORCED = 256
MOST_STEPS = 800
"""Beyond them an answer is left as it is."""

Ids = npt.NDArray[np.intp]
Choose = Callable[[Matcher, Ids, int], int]
"""One of the allowed tokens, in order of their numbers, after so many draws."""
Watch = Callable[[Matcher], None]
"""Is shown the matcher before each mask, and leaves its state as it is."""


@dataclass(slots=True)
class Answer:
    """`tokens`: without the stop token. `stuck`: nothing was allowed, or what was allowed was refused, before its end."""

    tokens: list[int] = field(default_factory=list)
    draws: int = 0
    redraws: int = 0
    ended: bool = False
    stuck: bool = False
    fell_back: bool = False


class Answering:
    """Answers of one tokenizer. Not for several threads."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._stop = tokenizer.stop_token_ids[0]
        self._segmenter = Segmenter(tokenizer, MOST_FORCED)
        words = (tokenizer.vocab_size + 31) // 32
        self._mask, self._behind = (torch.zeros(1, words, dtype=torch.int32) for _ in range(2))

    def answer(self, grammar: CompiledGrammar, choose: Choose, watch: Watch | None = None) -> Answer:
        """Each draw is looked at with what is forced behind it; one that leads nowhere is dropped and left out of the next mask."""
        matcher, found = grammar.matcher(None, MOST_FORCED + 1), Answer()
        if isinstance(matcher, CanonicalMatcher):
            matcher.prunes = False
        found.stuck = not self._take(matcher, self._segmenter.find(matcher, ()), found)
        while not (matcher.is_terminated() or found.stuck) and found.draws < MOST_STEPS:
            if watch is not None:
                watch(matcher)
            matcher.fill(self._mask, 0)
            allowed = tokens_of(self._mask.numpy()[0])
            if len(allowed):
                self._draw(matcher, choose(matcher, allowed, found.draws), found)
            else:
                found.stuck = True
        found.ended = matcher.is_terminated()
        found.fell_back = isinstance(matcher, CanonicalMatcher) and matcher.has_fallen_back
        return found

    def follows(self, grammar: CompiledGrammar, tokens: Sequence[int]) -> bool:
        """Whether these, and the end behind them, may come: each is in its mask, dead ends left out, leads on when it is drawn, and is
        accepted."""
        matcher = grammar.matcher(None, MOST_FORCED + 1)
        return all(self._may_come(matcher, token) for token in [*tokens, self._stop]) and matcher.is_terminated()

    def _may_come(self, matcher: Matcher, token: int) -> bool:
        matcher.fill(self._mask, 0)
        if not self._mask.numpy()[0, token >> 5] >> (token & 31) & 1:
            return False
        if isinstance(matcher, CanonicalMatcher) and matcher.draw(token) and not self._leads_on(matcher):
            return False
        return matcher.accept(token)

    def _draw(self, matcher: Matcher, token: int, found: Answer) -> None:
        found.draws += 1
        segment = None
        if isinstance(matcher, CanonicalMatcher) and matcher.banned < MOST_REDRAWS and matcher.draw(token):
            segment = self._segmenter.find(matcher, [*found.tokens[-MOST_TAIL:], token])
            matcher.draw_on(segment.tokens)
            if not self._leads_on(matcher):
                found.redraws += 1
                return
        found.stuck = not matcher.accept(token)
        if found.stuck or matcher.is_terminated():
            return
        found.tokens.append(token)
        if segment is None:
            segment = self._segmenter.find(matcher, found.tokens)
        found.stuck = not self._take(matcher, segment, found)

    def _leads_on(self, matcher: CanonicalMatcher) -> bool:
        matcher.inner.fill(self._behind, 0)
        return matcher.settle(self._behind.numpy()[0])

    def _take(self, matcher: Matcher, segment: Segment, found: Answer) -> bool:
        """What is forced, and the end where nothing else can follow."""
        found.tokens += segment.tokens
        return all(map(matcher.accept, [*segment.tokens, *([self._stop] if segment.ends else [])]))


def tokens_of(mask: Row) -> Ids:
    """The tokens that a mask allows."""
    words = np.flatnonzero(mask)
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = bits.nonzero()
    return words[rows] * 32 + columns
