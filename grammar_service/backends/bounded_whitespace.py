"""A bound on runs of whitespace between the tokens of a JSON text, for a library that skips whitespace again and again.

llguidance 1.7.6 repeats its `whitespace_pattern` without end, so that no pattern bounds a run; hence this matcher around its own.
"""

from __future__ import annotations

import torch

from grammar_service.backends.layer import Layer
from grammar_service.backends.protocol import Matcher
from grammar_service.vocabulary.token_spaces import TokenSpaces, advance


class BoundedWhitespace(Layer):
    """A Matcher that is another one of JSON texts, less what goes on after MAX_WHITESPACE characters of whitespace."""

    def __init__(self, matcher: Matcher, spaces: TokenSpaces) -> None:
        super().__init__(matcher)
        self._spaces = spaces
        self._states = [0]

    def accept(self, token: int) -> bool:
        after = advance(self._states[-1], self._spaces.text(token))
        if after is None or not self._matcher.accept(token):
            return False
        self._states.append(after)
        return True

    def rollback(self, n: int) -> None:
        self._matcher.rollback(n)
        del self._states[len(self._states) - n :]

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        if (mask := self._spaces.mask(self._states[-1])) is not None:
            bitmask[row, : len(mask)] &= mask

    def forced_bytes(self) -> bytes:
        forced = self._matcher.forced_bytes()
        state = self._states[-1]
        for length in range(len(forced)):
            after = advance(state, forced[length : length + 1])
            if after is None:
                return forced[:length]
            state = after
        return forced

    def reset(self) -> None:
        self._matcher.reset()
        self._states = [0]
