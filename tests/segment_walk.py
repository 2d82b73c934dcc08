"""Walks through a grammar by forced segments and free tokens, in tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.segments import Segment, Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed


@dataclass
class Walk:
    """`found` are the segments that were not empty."""

    tokenizer: GrammarTokenizer
    segmenter: Segmenter
    matcher: Matcher
    tokens: list[int] = field(default_factory=list)
    found: list[Segment] = field(default_factory=list)

    def segment(self) -> Segment:
        """The next one, taken. It is forced text, the matcher accepts it, and asking has changed nothing."""
        forced = self.matcher.forced_bytes()
        segment = self.segmenter.find(self.matcher, self.tokens)
        assert self.segmenter.find(self.matcher, self.tokens) == segment
        assert self.matcher.forced_bytes() == forced
        assert forced.startswith(self.text(segment.tokens))
        self.take(segment.tokens)
        if segment.tokens:
            self.found.append(segment)
        return segment

    def take(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            assert self.matcher.accept(token), self.text([token])
            self.tokens.append(token)

    def text(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.tokenizer.vocabulary[token] for token in tokens)


def walk_of(grammar: CompiledGrammar, tokenizer: GrammarTokenizer, segmenter: Segmenter) -> Walk:
    return Walk(tokenizer, segmenter, grammar.matcher(None, 4096))


def follow(walk: Walk, text: str) -> list[Segment]:
    """Give a text its canonical tokens wherever there is a choice: then the segments have them as well."""
    canonical = list(walk.tokenizer.inner.encode(text.encode()) or ())
    assert canonical or not text
    while walk.tokens != canonical:
        segment = walk.segment()
        assert canonical[: len(walk.tokens)] == walk.tokens, (text, [walk.text([token]) for token in walk.tokens])
        assert not segment.ends or walk.tokens == canonical
        walk.take(canonical[len(walk.tokens) :][:1])
    return walk.found


def wander(walk: Walk, choose: random.Random, most: int = 40) -> None:
    """Take any allowed token wherever there is a choice."""
    stops = set(walk.tokenizer.stop_token_ids)
    while len(walk.tokens) < most and not walk.matcher.is_terminated():
        segment = walk.segment()
        options = allowed(walk.matcher, walk.tokenizer.vocab_size)
        assert segment.ends == (options <= stops)
        walk.take([choose.choice(sorted(options))])
    if walk.matcher.is_terminated():
        assert walk.segmenter.find(walk.matcher, walk.tokens) == Segment((), False)
