"""What merges begin with: a token for each byte of a text, or for each character that has one and for the bytes of all others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from transformers.convert_slow_tokenizer import bytes_to_unicode

from grammar_service.errors import UnsupportedGrammar

SPACE = "\u2581"
"""How SentencePiece writes a space: it stands for nothing else, so that no text with this character in it has canonical tokens."""
Spelled = tuple[tuple[int, ...], ...]
"""Each id as the ids of its letters, () for ids that stand for no text, or never come."""


@dataclass(frozen=True, eq=False)
class ByteTokens:
    """The tokens that spell the characters without a token of their own: the `bytes` of each id, and the `others` (code points), which they
    never spell."""

    bytes: Mapping[int, int]
    others: frozenset[int]


def refused(why: str) -> UnsupportedGrammar:
    return UnsupportedGrammar(f"this tokenizer's canonical output is not known: {why}")


def of_bytes(ids: Mapping[str, int], special: Collection[str], vocab_size: int) -> Spelled:
    """A byte without a token never occurs in an answer. Raises UnsupportedGrammar: a continuation byte of UTF-8 has no token, so that an
    answer could get stuck inside of a character."""
    letters = bytes_to_unicode()
    own = {letter: ids[letter] for letter in letters.values() if letter in ids}
    if any(letters[byte] not in own for byte in range(0x80, 0xC0)):
        raise refused("it has no tokens for some bytes inside of characters")
    found: list[tuple[int, ...]] = [()] * vocab_size
    for token, number in ids.items():
        if token not in special and own.keys() >= set(token):
            found[number] = tuple(map(own.__getitem__, token))
    return tuple(found)


def of_characters(ids: Mapping[str, int], special: Collection[str], vocab_size: int) -> tuple[Spelled, ByteTokens]:
    """As SentencePiece has them. Raises UnsupportedGrammar: not each byte has a token, or the space has none."""
    names = {f"<0x{byte:02X}>": byte for byte in range(256)}
    if not names.keys() <= ids.keys():
        raise refused("it has no tokens for some bytes")
    if SPACE not in ids:
        raise refused("it has no token for a space")
    found: list[tuple[int, ...]] = [()] * vocab_size
    for token, number in ids.items():
        if token in names:
            found[number] = (number,)
        elif token not in special and " " not in token and all(char in ids for char in token):
            found[number] = tuple(ids[char] for char in token)
    others = frozenset(ord(token) for token in ids if len(token) == 1) | {ord(" ")}
    return tuple(found), ByteTokens({ids[name]: byte for name, byte in names.items()}, others)
