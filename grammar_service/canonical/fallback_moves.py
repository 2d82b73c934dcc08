"""What each token does to a text whose characters without a token are spelled by those of their bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grammar_service.canonical.letters import ByteTokens
from grammar_service.canonical.pretokenizers.character_classes import POINTS
from grammar_service.canonical.pretokenizers.utf8_classes import Utf8Classes


class FallbackMoves:
    """A state is a place inside of such a character, 0 between characters. There any other token may come, and nowhere else."""

    def __init__(self, tokens: ByteTokens, vocab_size: int) -> None:
        spelled = np.zeros(POINTS, np.int16)
        spelled[0xD800:0xE000] = -1
        spelled[[*tokens.others]] = -1
        utf8 = Utf8Classes.of(spelled)
        self._step = np.where((utf8.step == 0) & (utf8.ended < 0), -1, utf8.step)
        self._bytes = tokens.bytes
        self._ids = np.array([*tokens.bytes], np.int64)
        self._values = np.array([*tokens.bytes.values()], np.int64)
        self._vocab_size = vocab_size

    @property
    def size_bytes(self) -> int:
        return int(self._step.nbytes)

    def after(self, state: int, token: int) -> int:
        """-1: the tokenizer spells no text so."""
        byte = self._bytes.get(token)
        return int(self._step[state, byte]) if byte is not None else 0 if state == 0 else -1

    def allowed(self, state: int) -> npt.NDArray[np.bool_]:
        """bool [V]: the tokens that may come."""
        found = np.full(self._vocab_size, state == 0)
        found[self._ids] = self._step[state, self._values] >= 0
        return found
