"""The tokens that begin with a given text and go on after it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from grammar_service.segments.allowed import Allowed

_FEW = 64
_END = b"\xff" * 8


class Extensions:
    """A vocabulary (bytes by id) in alphabetical order."""

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        self._tokens = sorted({token for token in vocabulary if token})
        self.longest = max(map(len, self._tokens))

    def holds(self, text: bytes) -> bool:
        """Whether the text is a token's."""
        start = bisect_left(self._tokens, text)
        return start < len(self._tokens) and self._tokens[start] == text

    def can_extend(self, text: bytes, allowed: Allowed) -> bool:
        """Whether a token covers the text and more, where the rest is allowed after it. In doubt it does."""
        start, stop = self._range(text)
        if stop - start <= _FEW:
            return any(allowed.may_follow(token[len(text) :]) for token in self._tokens[start:stop])
        return any(self._begins(text + bytes([byte]), len(text), allowed) for byte in sorted(allowed.first))

    def _begins(self, text: bytes, at: int, allowed: Allowed) -> bool:
        start = bisect_left(self._tokens, text)
        stop = self._range(text)[1]
        return stop - start > _FEW or any(allowed.may_follow(token[at:]) for token in self._tokens[start:stop])

    def _range(self, text: bytes) -> tuple[int, int]:
        """Where the tokens stand that are longer than the text and begin with it."""
        start = bisect_left(self._tokens, text) + self.holds(text)
        return start, bisect_left(self._tokens, text + _END, lo=start)
