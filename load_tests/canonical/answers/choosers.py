"""Who draws in place of a model: by chance, by how often tokens occur, and with ill will."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from grammar_service.backends import Matcher
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Choose, Ids

ANY, COMMON, SHORTEST, NOWHERE = "any token", "common tokens", "the shortest tokens", "tokens that lead nowhere"
RANDOM, ADVERSARIAL = (ANY, COMMON), (SHORTEST, NOWHERE)
PATIENCE = 16
"""Draws, after which what closes comes first: by chance alone no string would end."""
TRIED = 8
"""Of many allowed tokens, so many are looked at whether they lead nowhere."""
STRAYING = 1 / 8
"""How often it does not all the same: lists would go on for ever where it is a comma that comes first."""
_CLOSING = (b'"', b"]}", b",", b"@.")
"""First characters; the sooner, the nearer to the end of most texts."""


class Choosers:
    """Of one tokenizer; `texts` tell how often its tokens occur. The same seed draws the same."""

    def __init__(self, tokenizer: GrammarTokenizer, texts: Iterable[str], seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        counts = np.bincount([token for text in texts for token in tokenizer.encode(text)], minlength=tokenizer.vocab_size)
        self._weights = counts.astype(np.float64)
        texts_of = tokenizer.vocabulary
        self._lengths = np.array([len(text) for text in texts_of])
        self._distances = np.array([_distance(text) for text in texts_of])
        self._distances[list(tokenizer.stop_token_ids)] = -1

    def by_name(self) -> Mapping[str, Choose]:
        return {ANY: self._any, COMMON: self._common, SHORTEST: self._shortest, NOWHERE: self._nowhere}

    def _any(self, _: Matcher, allowed: Ids, draws: int) -> int:
        return self._one(self._closing(allowed, draws))

    def _common(self, _: Matcher, allowed: Ids, draws: int) -> int:
        left = self._closing(allowed, draws)
        weights = np.cumsum(self._weights[left])
        if not weights[-1]:
            return self._one(left)
        return int(left[np.searchsorted(weights, self._chance.random() * weights[-1], side="right")])

    def _shortest(self, _: Matcher, allowed: Ids, draws: int) -> int:
        left = self._closing(allowed, draws)
        lengths = self._lengths[left]
        return self._one(left[lengths == lengths.min()])

    def _nowhere(self, matcher: Matcher, allowed: Ids, draws: int) -> int:
        left = self._closing(allowed, draws)
        tried = self._chance.permutation(left)[:TRIED].tolist()
        dead = next((token for token in tried if _leads_nowhere(matcher, token)), None)
        return self._one(left) if dead is None else int(dead)

    def _one(self, tokens: Ids) -> int:
        return int(tokens[self._chance.integers(len(tokens))])

    def _closing(self, allowed: Ids, draws: int) -> Ids:
        if draws < PATIENCE or self._chance.random() < STRAYING:
            return allowed
        distances = self._distances[allowed]
        nearest: Ids = allowed[distances == distances.min()]
        return nearest


def _leads_nowhere(matcher: Matcher, token: int) -> bool:
    return isinstance(matcher, CanonicalMatcher) and matcher.leads_nowhere(token)


def _distance(text: bytes) -> float:
    """A comma further on begins one more member."""
    found = (number for number, first in enumerate(_CLOSING) if text[:1] and text[:1] in first)
    return next(found, len(_CLOSING)) + 0.5 * (b"," in text[1:])
