"""Whitespace in the tokens of a vocabulary, and runs of it between the tokens of a JSON text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch

from grammar_service.spec import MAX_WHITESPACE

_SPACES = b" \t\n\r"
_LONG_RUN = re.compile(rb"[ \t\n\r]{%d}" % (MAX_WHITESPACE + 1))
_QUOTE, _BACKSLASH = b'"\\'

IN_STRING = -1
ESCAPED = -2
"""A state is how many whitespace characters end the text so far, or one of these two inside of strings."""


def advance(state: int, text: bytes) -> int | None:
    """The state after more of a valid JSON text, None where a run becomes longer than MAX_WHITESPACE."""
    for byte in text:
        if state == ESCAPED:
            state = IN_STRING
        elif state == IN_STRING:
            state = ESCAPED if byte == _BACKSLASH else 0 if byte == _QUOTE else IN_STRING
        elif byte in _SPACES:
            state += 1
            if state > MAX_WHITESPACE:
                return None
        else:
            state = IN_STRING if byte == _QUOTE else 0
    return state


class TokenSpaces:
    """Which tokens of a vocabulary (bytes by id) would make a run too long; a mask a state, made on first use."""

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        self._vocabulary = vocabulary
        self._leading = {token: count for token, text in enumerate(vocabulary) if (count := len(text) - len(text.lstrip(_SPACES)))}
        self._long = [token for token, text in enumerate(vocabulary) if len(text) > MAX_WHITESPACE and _LONG_RUN.search(text)]
        self._masks: dict[int, torch.Tensor | None] = {}

    def text(self, token: int) -> bytes:
        """The bytes of a token; none for ids without text."""
        return self._vocabulary[token] if 0 <= token < len(self._vocabulary) else b""

    def mask(self, state: int) -> torch.Tensor | None:
        """int32 [ceil(V/32)], bit set = allowed; None where all tokens are."""
        if state not in self._masks:
            self._masks[state] = self._mask(state)
        return self._masks[state]

    def _mask(self, state: int) -> torch.Tensor | None:
        refused = [token for token in self._long if advance(state, self._vocabulary[token]) is None]
        if state > 0:
            refused += [token for token, count in self._leading.items() if state + count > MAX_WHITESPACE]
        if not refused:
            return None
        allowed = np.ones((len(self._vocabulary) + 31) // 32 * 32, dtype=np.uint8)
        allowed[refused] = 0
        return torch.from_numpy(np.packbits(allowed, bitorder="little").view(np.int32).copy())
