"""Looks up how a value goes on, in texts that are likely to contain it: prompt lookup (Saxena 2023), by words instead of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

LONGEST_VALUE = 64
"""Bytes of a value that are looked for."""
_WORDS = bytes(byte if byte >= 0x80 or chr(byte).isalnum() else 0x20 for byte in range(256)).lower()
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_ESCAPES = tuple(b"\\" + bytes([byte]) for byte in b'\\"/bfnrt')
"""Escaped backslashes first: what stands behind one is no escape."""
_NUMBERED = re.compile(rb"\\u[0-9a-fA-F]{4}")
MOST_TEXT = 1 << 17
"""Bytes of a text, the last ones. A look-up that finds nothing takes 4 ms in as many."""
MOST_ENDS = 6
"""Ends of a value that are looked for."""


class SearchedText:
    """A text in which values are looked up by how they begin, whatever their case and punctuation. It is as a string of JSON has it, and
    of a longer one the last `MOST_TEXT` bytes are kept, or half as many."""

    def __init__(self, text: bytes = b"") -> None:
        self._text, self._words = bytearray(b" "), bytearray(b" ")
        self.add(text)

    def __len__(self) -> int:
        return len(self._text)

    @classmethod
    def of_prompt(cls, text: bytes) -> SearchedText:
        escaped = json.dumps(text[-MOST_TEXT:].decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()
        return cls(escaped[-MOST_TEXT:])

    def add(self, text: bytes) -> None:
        self._text += text
        self._words += _words(text)
        if (over := len(self._text) - MOST_TEXT) > 0:  # seldom: what is left is copied
            del self._text[: over + MOST_TEXT // 2], self._words[: over + MOST_TEXT // 2]

    def following(self, words: bytes, most: int) -> bytes:
        """What stands behind the first place of these words, at most `most` bytes."""
        place = self._words.find(words)
        return b"" if place < 0 else bytes(self._text[place + len(words) : place + len(words) + most])


def continuation(texts: Mapping[str, SearchedText], value: bytes, most: int, has_escapes: bool = False) -> tuple[bytes, str]:
    """What follows the value, or the longest end of it that begins with a word, in the first text that has it, at most `most` bytes; and
    the name of that text. Where the value `has_escapes` line breaks and quotes are a part of it, else it ends there."""
    for words in islice(_ends(b" " + _words(value)), MOST_ENDS):
        for name, text in texts.items():
            if found := text.following(words, most):
                return found if has_escapes else found.partition(b"\\")[0], name
    return b"", ""


def _words(text: bytes) -> bytes:
    """A text of the same length, with blanks between its words."""
    for escape in _ESCAPES:
        text = text.replace(escape, b"  ")
    return _NUMBERED.sub(b"      ", text).translate(_WORDS)


def _ends(value: bytes) -> Iterator[bytes]:
    """The longest first, each with the space ahead of its first word."""
    place = 0
    while 0 <= place < len(value) - 1:
        if value[place + 1] != 0x20 and len(value) - place <= LONGEST_VALUE:
            yield value[place:]
        place = value.find(b" ", place + 1)


def count_words(text: bytes) -> int:
    return len(_WORD.findall(text))


def first_words(text: bytes, count: int) -> bytes | None:
    """The beginning of a text with so many words; None: it has less, or the last one of them may go on."""
    for number, word in enumerate(_WORD.finditer(text), 1):
        if number == count:
            return text[: word.end()] if word.end() < len(text) else None
    return None
