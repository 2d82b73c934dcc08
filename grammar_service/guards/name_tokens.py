"""The tokens of a vocabulary that end a member's name, by what of the name they hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from grammar_service.guards.escapes import read

Row = npt.NDArray[np.int32]
_SPACES = b" \t\n\r"
_DENSE = 256
_AFTER_NUMBERS = b" \t\n\r,]"
_IN_ESCAPES = b'"\\/bfnrtu0123456789abcdefABCDEF'
_SURROGATE = len(b"\\ud83d")
_WHOLE = re.compile(rb'[{\[,][ \t\n\r]*"(?:[^"\\]|\\.)*"[ \t\n\r]*(?:[:,\]]|\Z)', re.DOTALL)
_INTO = re.compile(rb'(?:^|[\[,])[ \t\n\r]*"[^"]')
_NUMERIC = re.compile(
    rb"(?:(?:.*[ \t\n\r,\[])?[-0-9.]*[0-9][ \t\n\r,\]}].*"  # a number that ends
    rb"|[ \t\n\r,\[]*[-0-9.]*[eE][-+0-9]*(?:[ \t\n\r,\]}].*)?"  # one with an exponent
    rb"|(?:.*[ \t\n\r,\[])?-?0)\Z",  # one that is zero
    re.DOTALL,
)
_BLANKS = rb"[ \t\n\r]*"
_WHOLE_VALUE = rb'(?:"(?:[^"\\]|\\.)*"|\{' + _BLANKS + rb"\}|\[" + _BLANKS + rb"\]|true|false|null|-?[0-9][-+.0-9eE]*)"
_FAR = re.compile(rb"(?:^|[\[{,:])" + _BLANKS + _WHOLE_VALUE + _BLANKS + rb"(?:[,\]}:]|\Z)", re.DOTALL)


class TokenSet(NamedTuple):
    """Some tokens as the words of a bitmask row that they are in, each once; `bits`: theirs in those words, `others`: all but theirs."""

    tokens: npt.NDArray[np.intp]
    words: npt.NDArray[np.intp] | slice
    bits: Row
    others: Row

    def clear(self, row: Row) -> None:
        """Forbid them: int32 [ceil(V/32)]."""
        row[self.words] &= self.others

    def among(self, row: Row) -> Iterator[int]:
        """Those that a row allows."""
        if len(self.tokens) and (row[self.words] & self.bits).any():
            yield from self.tokens[(row[self.tokens >> 5] >> (self.tokens & 31) & 1) != 0].tolist()


def forbid(row: Row, token: int) -> None:
    """Clear the token's bit."""
    row[token >> 5] &= np.int32(~(1 << (token & 31)) if token & 31 < 31 else 0x7FFFFFFF)


def token_set(tokens: Iterable[int]) -> TokenSet:
    listed = np.unique(np.array(list(tokens), dtype=np.intp))
    last = int(listed[-1]) >> 5 if len(listed) else -1
    row = np.zeros(last + 1, dtype=np.uint32)
    np.bitwise_or.at(row, listed >> 5, np.uint32(1) << (listed & 31).astype(np.uint32))
    words = np.flatnonzero(row)
    # A row is faster read as a whole than by many of its words.
    chosen: npt.NDArray[np.intp] | slice = slice(0, last + 1) if len(words) > _DENSE else words
    bits = row[chosen].view(np.int32)
    return TokenSet(listed, chosen, bits, ~bits)


class NameTokens:
    """Of a vocabulary (bytes by id). Made in a fifth of a second for a large one.

    `closing`: by the end of a name, the tokens that begin with it and close it. `opening`: by a whole name, the tokens that begin with it,
    quotes included. `several`: the tokens that may begin and close a name behind the end of something else. `longest`: bytes of the longest
    end of a name. What is said of names holds of strings in arrays too. `after_numbers`: the tokens that begin with what ends a number;
    `numeric`: those that end one later on, are or begin a zero, or have an exponent. `blank`: those of whitespace;
    `far`: those with a whole value; `closers`: with a bracket that closes; `quoted`: with a quote
    (`quoted_far`, `quoted_closers`: both);
    `into`: those that go on behind the opening quote of a string; `escaped`: those with a backslash; `special`: with that or a quote.
    """

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        quoted = [(token, text) for token, text in enumerate(vocabulary) if b'"' in text]
        self.closing = _grouped((token, _closed(text, 0)) for token, text in quoted)
        self.opening = _grouped((token, _closed(text, text.index(b'"') + 1)) for token, text in quoted if text.lstrip(_SPACES)[:1] == b'"')
        self.several = token_set(token for token, text in quoted if _WHOLE.search(text))
        self.after_numbers = token_set(token for token, text in enumerate(vocabulary) if text[:1] in _AFTER_NUMBERS and text)
        self.numeric = token_set(token for token, text in enumerate(vocabulary) if text and _NUMERIC.match(text))
        self.into = token_set(token for token, text in quoted if _INTO.search(text))
        self.escaped = token_set(token for token, text in enumerate(vocabulary) if b"\\" in text)
        self.special = token_set([*(token for token, _ in quoted), *self.escaped.tokens.tolist()])
        self.far = token_set(token for token, text in enumerate(vocabulary) if _has_far(text))
        self.closers = token_set(token for token, text in enumerate(vocabulary) if b"}" in text or b"]" in text)
        self.quoted_far = token_set(token for token in self.far.tokens.tolist() if b'"' in vocabulary[token])
        self.quoted_closers = token_set(token for token in self.closers.tokens.tolist() if b'"' in vocabulary[token])
        self.quoted = token_set(token for token, _ in quoted)
        self.blank = token_set(token for token, text in enumerate(vocabulary) if text and not text.strip(_SPACES))
        self.longest = max(map(len, self.closing), default=0)
        self._vocabulary = vocabulary
        self._by_first: dict[int, list[int]] = defaultdict(list)
        for token, text in quoted:
            self._by_first[text[0]].append(token)

    def text(self, token: int) -> bytes:
        """The bytes of a token; none for ids without text."""
        return self._vocabulary[token] if 0 <= token < len(self._vocabulary) else b""

    def behind(self, pending: bytes) -> Iterator[tuple[int, bytes]]:
        """Tokens that go on with an escape that has begun, and close the name, each with what is then the name's end."""
        for first in _IN_ESCAPES if len(pending) != _SURROGATE else b"\\":
            for token in self._by_first.get(first, ()):
                piece = read(pending, self._vocabulary[token])
                if piece.end >= 0:
                    yield token, piece.text

    def alone(self, pending: bytes) -> bytes | None:
        """What an escape that may be the first half of a pair stands for without the other; None for other starts of escapes."""
        return read(pending, b'"').text if len(pending) == _SURROGATE else None


def _has_far(text: bytes) -> bool:
    """Whether it holds a whole value and what comes before or behind it."""
    found = _FAR.search(text)
    return found is not None and any(byte in text for byte in b"[]{},:")


def _closed(text: bytes, start: int) -> bytes | None:
    """What stands in a token before the closing quote of a string, None where there is none."""
    piece = read(b"", text, start)
    return piece.text if piece.end >= 0 else None


def _grouped(ends: Iterable[tuple[int, bytes | None]]) -> dict[bytes, TokenSet]:
    groups: dict[bytes, list[int]] = defaultdict(list)
    for token, end in ends:
        if end is not None:
            groups[end].append(token)
    return {end: token_set(tokens) for end, tokens in groups.items()}
