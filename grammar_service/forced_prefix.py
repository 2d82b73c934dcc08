"""The text that a grammar forces at the start, whatever the model would say."""

from __future__ import annotations

import numpy as np
import torch

from grammar_service.backends.protocol import CompiledGrammar
from grammar_service.tokenizer import GrammarTokenizer

MOST_BYTES = 4096
_NO_TEXT = -1


class ForcedPrefix:
    """Walks grammars of one vocabulary byte by byte: as long as all allowed tokens begin with the same byte, that byte is forced."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        vocabulary: list[bytes] = tokenizer.xgrammar.decoded_vocab
        self._first_bytes = np.array([token[0] if token else _NO_TEXT for token in vocabulary], dtype=np.int16)
        self._first_bytes[list(tokenizer.stop_token_ids)] = _NO_TEXT
        self._single = {token[0]: index for index, token in enumerate(vocabulary) if len(token) == 1}
        self._row = torch.zeros((1, (tokenizer.vocab_size + 31) // 32), dtype=torch.int32)

    def of(self, grammar: CompiledGrammar, most_bytes: int = MOST_BYTES) -> bytes:
        """The longest forced start, cut at `most_bytes`, and at a byte for which the vocabulary has no token of its own."""
        matcher = grammar.matcher(None, 0)
        forced = bytearray()
        while len(forced) < most_bytes:
            matcher.fill(self._row, 0)
            byte = self._only_first_byte()
            if byte not in self._single or not matcher.accept(self._single[byte]):
                break
            forced.append(byte)
        return bytes(forced)

    def _only_first_byte(self) -> int:
        """The byte with which all tokens of the mask begin; -1 where they differ, or where the text may end."""
        bits = np.unpackbits(self._row.numpy().view(np.uint8), bitorder="little")[: len(self._first_bytes)]
        first = self._first_bytes[bits.astype(bool)]
        return int(first[0]) if len(first) and (first == first[0]).all() else _NO_TEXT
