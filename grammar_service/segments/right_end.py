"""The right end of a segment: which of its tokens stay whatever comes after it."""

from __future__ import annotations

from collections.abc import Iterator

from grammar_service.segments.allowed import Allowed
from grammar_service.segments.extensions import Extensions
from grammar_service.segments.left_end import Encoded
from grammar_service.vocabulary.inner_encoder import InnerEncoder

_PROBES = (
    *(
        "a",
        "A",
        "Aa",
        "aA",
        "z",
        "s",
        "S",
        "re",
        "ll",
        "é",
        "東",
        "\u0301",
        "1",
        "11",
        "111",
        "²",
        ".",
        "..",
        "'",
        "'s",
        '"',
        "/",
        "_",
        "🎉",
    ),
    *(" ", "  ", " a", " 1", " .", "\t", "\n", "\r", "\n\n", " \n", "\n ", "\n/", ".\n"),
)
"""What may come next, for each way in which pre-tokenizers look ahead."""
_FEW = 16
_MOST_ENCODINGS = 64


class RightEnd:
    """A token of the longer text either ends with the segment or crosses its end, and then stands after what the tokenizer makes of the
    text before it. So what all of those encodings begin with stays. Pre-tokenizers look ahead as well: they are asked."""

    def __init__(self, encoder: InnerEncoder, extensions: Extensions) -> None:
        self._encoder = encoder
        self._extensions = extensions

    def kept(self, encoded: Encoded, allowed: Allowed) -> int:
        """How many of the tokens stay, if `allowed` comes after all of them."""
        kept = len(encoded.tokens)
        for other in self._others(encoded, allowed):
            kept = _agreeing(encoded, other, kept)
            if not kept:
                break
        return kept

    def _others(self, encoded: Encoded, allowed: Allowed) -> Iterator[tuple[int, ...] | None]:
        """Encodings of parts of the text, and of more than it; None where one cannot be had."""
        whole, start = encoded.before + encoded.text, len(encoded.before)
        window = range(max(start, len(whole) - self._extensions.longest + 1), len(whole))
        yield from self._encodings_before(whole, start, [at for at in window if self._extensions.can_extend(whole[at:], allowed)])
        for probe in self._probes(allowed):
            ids = self._encoder.encode(whole + probe)
            # A text that needs another tail has no canonical tokens from here on, whatever the segment is.
            if ids is not None and ids[: len(encoded.tail)] == encoded.tail:
                yield ids

    def _encodings_before(self, whole: bytes, start: int, offsets: list[int]) -> Iterator[tuple[int, ...] | None]:
        """Of the text up to each offset; inside a character also up to where a token may begin that ends there, and so on backwards: in
        some alphabets to the beginning, so that they are counted."""
        seen, encoded = set(offsets), set[int]()
        while offsets:
            at = offsets.pop()
            character = _character(whole, start, at)
            if character not in encoded:
                encoded.add(character)
                yield self._encoder.encode(whole[:character]) if len(encoded) <= _MOST_ENCODINGS else None
            if character < at:
                earlier = [offset for offset in self._crossing(whole, start, character, at) if offset not in seen]
                seen.update(earlier)
                offsets += earlier

    def _crossing(self, whole: bytes, start: int, character: int, at: int) -> Iterator[int]:
        """Where tokens begin that end inside the character, at the offset or before it."""
        for offset in range(max(start, character - self._extensions.longest), character):
            if any(self._extensions.holds(whole[offset:end]) for end in range(character + 1, at + 1)):
                yield offset

    def _probes(self, allowed: Allowed) -> Iterator[bytes]:
        for probe in _PROBES:
            if allowed.may_follow(text := probe.encode()):
                yield text
        if len(allowed.first) <= _FEW:
            yield from (bytes([byte]) for byte in allowed.first if byte < 0x80)


def _character(text: bytes, start: int, at: int) -> int:
    """Where the character begins in which the offset lies."""
    while at > start and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _agreeing(encoded: Encoded, other: tuple[int, ...] | None, most: int) -> int:
    """How many of its first `most` tokens another encoding, which begins with the tail if it is so long, has as well."""
    if other is None:
        return 0
    after = other[len(encoded.tail) :]
    return next(
        (index for index, (own, its) in enumerate(zip(encoded.tokens[:most], after, strict=False)) if own != its), min(most, len(after))
    )
