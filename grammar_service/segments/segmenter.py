"""Finds the forced tokens at the present state of a matcher."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch

from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.backends.canonical.product import ProductMatcher
from grammar_service.backends.protocol import Matcher
from grammar_service.segments.allowed import Row, Texts
from grammar_service.segments.extensions import Extensions
from grammar_service.segments.left_end import Encoded, LeftEnd
from grammar_service.segments.memo import Memo
from grammar_service.segments.right_end import RightEnd
from grammar_service.segments.segment import END, NOTHING, Segment
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_MOST_BYTES_PER_TOKEN = 8
_MOST_RESULTS = 1 << 12
_MOST_REMEMBERED = 512
"""Bytes of a forced text: of long ones, made to hurt, so many results would take hundreds of megabytes."""


class Segmenter:
    """Forced segments for the matchers of one vocabulary, at most `most_tokens` long: a longer one goes on at the next call.

    The tokens are canonical: if those before them are, then together they are what the tokenizer makes of a text that begins so. Not for
    several threads. Made in two seconds for a large vocabulary.
    """

    def __init__(self, tokenizer: GrammarTokenizer, most_tokens: int = 256) -> None:
        self._tokenizer = tokenizer
        self._most_tokens = most_tokens
        self._most_bytes = most_tokens * _MOST_BYTES_PER_TOKEN
        self._texts = Texts(tokenizer.vocabulary)
        self._left = LeftEnd(tokenizer.inner, tokenizer.vocabulary)
        self._right = RightEnd(tokenizer.inner, Extensions(tokenizer.vocabulary))
        self._mask = torch.zeros((1, (tokenizer.vocab_size + 31) // 32), dtype=torch.int32)
        self._row: Row = self._mask[0].numpy()
        self._encodings: Memo[tuple[tuple[int, ...], bytes], Encoded | None] = Memo(_MOST_RESULTS)
        self._segments: Memo[tuple[Encoded, int, bool, bytes], Segment] = Memo(_MOST_RESULTS)

    def find(self, matcher: Matcher, emitted: Sequence[int]) -> Segment:
        """`emitted`: output tokens so far (prompt excluded; the prompt's end counts as a boundary). The matcher's state is the same
        afterwards. A terminated matcher has no segment.

        Where none of the matcher's stop tokens is the tokenizer's, an end is seen only together with the tokens that lead to it.
        """
        if isinstance(matcher, ProductMatcher):
            return Segment(*matcher.forced(self._most_tokens))
        if not isinstance(matcher, CanonicalMatcher):
            return self._found(matcher, emitted)
        # What may come next as text is not in its masks: a word may come whose first letter alone may not.
        segment = self._found(matcher.inner, emitted)
        followed = matcher.followed(segment.tokens)
        return segment if followed == len(segment.tokens) else Segment(segment.tokens[:followed], False)

    def continued(self, emitted: Sequence[int], text: bytes) -> tuple[int, ...]:
        """A text that may follow the output tokens so far, or the part of it that can be encoded behind them."""
        encoded = self._encoded(self._left.tail(emitted), text)
        return () if encoded is None else encoded.tokens

    def _found(self, matcher: Matcher, emitted: Sequence[int]) -> Segment:
        forced = matcher.forced_bytes()[: self._most_bytes]
        if not forced:
            return END if self._is_at_the_end(matcher) else NOTHING
        encoded = self._encoded(self._left.tail(emitted), forced)
        return NOTHING if encoded is None else self._stepped(matcher, encoded)

    def _encoded(self, tail: tuple[int, ...], text: bytes) -> Encoded | None:
        if len(text) > _MOST_REMEMBERED:
            return self._left.encoded(tail, text)
        return self._encodings.get((tail, text), lambda: self._left.encoded(tail, text))

    def _stepped(self, matcher: Matcher, encoded: Encoded) -> Segment:
        accepted = 0
        for token in encoded.tokens:
            if not matcher.accept(token):
                break
            accepted += 1
        row = self._filled(matcher) if accepted == len(encoded.tokens) else None
        ends = row is not None and self._only_stops(matcher, row)
        matcher.rollback(accepted)
        state = b"" if row is None else hashlib.blake2b(row.tobytes(), digest_size=16).digest()
        if len(encoded.text) > _MOST_REMEMBERED:
            return self._segment(encoded, accepted, row, ends)
        return self._segments.get((encoded, accepted, ends, state), lambda: self._segment(encoded, accepted, row, ends))

    def _segment(self, encoded: Encoded, accepted: int, row: Row | None, ends: bool) -> Segment:
        kept = accepted if ends else min(accepted, self._right.kept(encoded, self._texts.allowed(row)))
        return Segment(encoded.tokens[: min(kept, self._most_tokens)], ends and kept <= self._most_tokens)

    def _is_at_the_end(self, matcher: Matcher) -> bool:
        """Without a mask wherever the text is not complete: only then is a stop token accepted."""
        for stop in self._tokenizer.stop_token_ids:
            if matcher.accept(stop):
                matcher.rollback(1)
                return self._only_stops(matcher, self._filled(matcher))
        return False

    def _only_stops(self, matcher: Matcher, row: Row) -> bool:
        if matcher.names_tokens and (row & self._tokenizer.special_row).any():
            return False
        return self._texts.only_stops(row)

    def _filled(self, matcher: Matcher) -> Row:
        matcher.fill(self._mask, 0)
        return self._row
