"""The left end of a segment: how forced text is encoded after tokens that stand already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grammar_service.segments.memo import PairMemo
from grammar_service.vocabulary.inner_encoder import InnerEncoder

MOST_TAIL = 32
"""Tokens looked back at where the tokenizer never starts anew: what a pre-tokenizer decides depends on nothing that far back."""
_PAIRS = 1 << 16
"""Places for what is known of pairs of tokens, which takes 110 us to find out: 512 KiB."""
_MOST_SHORTENED = 16
"""Characters of a forced text that are tried after a tail that it would merge with."""
_PROBES = ("", "a", "A", "1", " ", "\n", ".", "'s", "東", "\u0301")
"""One for each class that pre-tokenizers tell apart."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """`tokens` are `text`, as the tokenizer encodes it after `tail` (tokens that stand already; `before` is their text)."""

    tail: tuple[int, ...]
    before: bytes
    text: bytes
    tokens: tuple[int, ...]


class LeftEnd:
    """Of one vocabulary (bytes by id)."""

    def __init__(self, encoder: InnerEncoder, vocabulary: Sequence[bytes]) -> None:
        self._encoder = encoder
        self._vocabulary = vocabulary
        self._pairs = PairMemo(_PAIRS)

    def tail(self, emitted: Sequence[int]) -> tuple[int, ...]:
        """The last tokens, as many as can have a say in how the text after them is encoded."""
        start = len(emitted)
        while start > 0 and len(emitted) - start < MOST_TAIL:
            start -= 1
            if not self._vocabulary[emitted[start]]:
                return tuple(emitted[start + 1 :])
            if start and self._is_boundary(emitted[start - 1], emitted[start]):
                break
        return self._whole_characters(tuple(emitted[start:]))

    def encoded(self, tail: tuple[int, ...], forced: bytes) -> Encoded | None:
        """The forced text, or the part of it that can be encoded after the tail; None where that is nothing."""
        before = self._encoder.text(tail)
        if found := self._continued(tail, before, forced):
            return found
        if not _is_text(before):
            return None
        if self._encoder.encode(before) != tail:
            shorter = self._whole_characters(tail[1:])
            return self.encoded(shorter, forced) if len(shorter) < len(tail) else None
        characters = _whole(forced).decode("utf-8")[:_MOST_SHORTENED]
        shortened = (characters[:length].encode() for length in range(len(characters), 0, -1))
        return next((found for text in shortened if (found := self._continued(tail, before, text))), None)

    def _continued(self, tail: tuple[int, ...], before: bytes, forced: bytes) -> Encoded | None:
        """Where the encoding of all of it begins with the tail."""
        text = _whole(before + forced)[len(before) :]
        ids = self._encoder.encode(before + text) if text else None
        return Encoded(tail, before, text, ids[len(tail) :]) if ids and ids[: len(tail)] == tail else None

    def _is_boundary(self, left: int, right: int) -> bool:
        return self._pairs.get(left, right, lambda: self._starts_anew(self._vocabulary[left], self._vocabulary[right]))

    def _starts_anew(self, left: bytes, right: bytes) -> bool:
        """Whether the tokenizer starts anew between two tokens, whatever comes after them."""
        if not left or not right or not _is_text(left + right) or not _is_text(left):
            return False
        if self._encoder.is_pairwise:
            return True
        return all(len(left) in self._encoder.boundaries(left + right + probe.encode()) for probe in _PROBES)

    def _whole_characters(self, tail: tuple[int, ...]) -> tuple[int, ...]:
        while tail and self._vocabulary[tail[0]][0] & 0xC0 == 0x80:
            tail = tail[1:]
        return tail


def _is_text(text: bytes) -> bool:
    return len(_whole(text)) == len(text)


def _whole(text: bytes) -> bytes:
    """Up to the first byte that is not part of a whole character."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return text[: error.start]
    return text
