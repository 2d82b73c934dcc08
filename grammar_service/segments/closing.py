"""A short end for an answer that must end soon."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from grammar_service.backends.protocol import Matcher
from grammar_service.segments.allowed import Row
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MOST_S = 0.15
"""Seconds of processor time of one search. 1,000 tokens take 10 to 30 ms, the first ones of a grammar on llguidance up to 60."""
MOST_IN_TURN = 300
"""Bytes in turn without an end between them: a pattern goes round."""
_ENDS = b"}],"
"""Of containers first: a comma begins another member or item."""
_STARTS = b'n"0ft[{'
"""Of values, the shortest first: `null`, a string, `0`, `false`, `true`, an array, an object."""
_FREE = b"aZ{ "
"""All of these come next in a string whose text is free."""
_QUOTE, _FILLER = b'"', b"x"
_VALUES = b"123456789-+.eE :\n\t\r" + _STARTS + _ENDS
_TEXT = bytes(byte for byte in range(0x20, 0x100) if byte not in _VALUES)
"""In no place but a string, if there: they neither begin values nor follow any."""


class ClosingSearch:
    """Ends answers by the shortest choice at each place: containers and strings end, optional members stay out, and required ones get a
    short value. Not for several threads."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens = tokenizer.byte_tokens
        self._mask = torch.zeros((1, (tokenizer.vocab_size + 31) // 32), dtype=torch.int32)
        self._row: Row = self._mask[0].numpy()
        self.gave_up = False
        """Whether the last search took too long or went round, so that there may be an end all the same."""
        self._in_turn = 0
        self._turns = 0
        self._ids = np.array([*self._tokens.values()], dtype=np.int64)
        """Of single bytes."""

    def find(self, matcher: Matcher, most: int, seconds: float = MOST_S) -> tuple[int, ...] | None:
        """At most `most` tokens with which the text is complete, without a stop token; the matcher's state is the same afterwards. None:
        no such end was found, or not within so many seconds of processor time. Takes 10 to 50 us a token."""
        taken: list[int] = []
        until, self.gave_up, self._in_turn, self._turns = time.thread_time() + seconds, False, 0, 0
        try:
            while not self._is_complete(matcher):
                if time.thread_time() > until or self._in_turn > MOST_IN_TURN:
                    self.gave_up = True
                    return None
                if not (more := self._accepted(matcher, taken)) or len(taken) + len(more) > most:
                    matcher.rollback(len(more))
                    return None
                taken += more
            return tuple(taken)
        finally:
            matcher.rollback(len(taken))

    def ends(self, matcher: Matcher, tokens: Sequence[int]) -> bool:
        """Whether the text is complete behind these tokens; the matcher's state is the same afterwards."""
        if not _accepts_all(matcher, tokens):
            return False
        complete = self._is_complete(matcher)
        matcher.rollback(len(tokens))
        return complete

    def _is_complete(self, matcher: Matcher) -> bool:
        for stop in self._tokenizer.stop_token_ids:
            if matcher.accept(stop):
                matcher.rollback(1)
                return True
        return False

    def _accepted(self, matcher: Matcher, taken: Sequence[int]) -> Sequence[int]:
        """The next tokens behind these, which the matcher has taken."""
        forced = matcher.forced_bytes()
        tokens = self._tokenizer.inner.encode(forced) if forced else None
        if tokens and _accepts_all(matcher, tokens):
            return tokens
        matcher.fill(self._mask, 0)
        special = self._special() if matcher.names_tokens else None
        last = self._tokenizer.vocabulary[taken[-1]] if taken else b""
        token = special
        if special is None or (taken and not last):  # one that may come again and again would
            token = self._shortest(last)
        token = special if token is None else token
        return () if token is None or not matcher.accept(token) else (token,)

    def _special(self) -> int | None:
        """One that goes on behind the text, whatever text may come."""
        special = np.flatnonzero(np.unpackbits((self._row & self._tokenizer.special_row).view(np.uint8), bitorder="little"))
        return int(special[0]) if len(special) else None

    def _shortest(self, last: bytes) -> int | None:
        """By the mask, behind the text of the last token."""
        if all(self._allowed(byte) is not None for byte in _FREE):
            return self._first(_QUOTE + _FILLER)
        if self._first(_TEXT) is not None:
            quote = self._first(_QUOTE)
            self._in_turn = 0 if quote is not None else self._in_turn + 1
            return quote if quote is not None else self._next()
        first = self._first(_ENDS + _STARTS.replace(last, b""))
        return first if first is not None else self._next()

    def _next(self) -> int | None:
        """The bytes that may come take turns: one that may come again and again may go round."""
        allowed = self._ids[(self._row[self._ids // 32] >> self._ids % 32 & 1).astype(bool)]
        if not len(allowed):
            return None
        self._turns += 1
        return int(allowed[self._turns % len(allowed)])

    def _first(self, texts: bytes) -> int | None:
        return next((token for byte in texts if (token := self._allowed(byte)) is not None), None)

    def _allowed(self, byte: int) -> int | None:
        token = self._tokens.get(byte)
        return token if token is not None and self._row[token // 32] >> token % 32 & 1 else None


def _accepts_all(matcher: Matcher, tokens: Sequence[int]) -> bool:
    """Takes all of them or none."""
    for count, token in enumerate(tokens):
        if not matcher.accept(token):
            matcher.rollback(count)
            return False
    return True
