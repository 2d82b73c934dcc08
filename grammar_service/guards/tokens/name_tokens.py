"""The tokens of a vocabulary that end a member's name, by what of the name they hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from grammar_service.guards.tokens.escapes import read
from grammar_service.guards.tokens.item_tokens import ItemTokens, string_end, without_space
from grammar_service.guards.tokens.token_set import TokenSet, token_set

_SPACES = b" \t\n\r"
_AFTER_NUMBERS = b" \t\n\r,]"
_IN_ESCAPES = b'"\\/bfnrtu0123456789abcdefABCDEF'
_SURROGATE = len(b"\\ud83d")
_WHOLE = re.compile(rb'[{\[,][ \t\n\r]*"(?:[^"\\]|\\.)*"[ \t\n\r]*(?:[:,\]]|\Z)', re.DOTALL)
_INTO = re.compile(rb'(?:^|[\[{,])[ \t\n\r]*"[^"]')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:(")|\\?\Z)', re.DOTALL)
_OBJECT = re.compile(rb"\{.*\}", re.DOTALL)
_LATER_COMMA = re.compile(rb"[^, \t\n\r].*,", re.DOTALL)
_NEXT = re.compile(rb",[ \t\n\r]*'")
_MARKED = re.compile(rb'["\\\\{}\[\],:]')
_MAYBE_NUMERIC = re.compile(rb"[0-9eE]")
_ENDED_NUMBER = re.compile(rb"(?:.*[ \t\n\r,\[])?[-0-9.]*[0-9][ \t\n\r,\]}].*\Z", re.DOTALL)
_EXPONENT = re.compile(rb"[ \t\n\r,\[]*[-0-9.]*[eE][-+0-9]*(?:[ \t\n\r,\]}].*)?\Z", re.DOTALL)
_LONG_EXPONENT = re.compile(rb"[eE][-+]?[0-9]{7}")
_ZERO = re.compile(rb"-?0\Z")
_LATER_ZERO = re.compile(rb".*[ \t\n\r,\[]-?0\Z", re.DOTALL)
_BLANKS = rb"[ \t\n\r]*"
_WHOLE_VALUE = rb'(?:"(?:[^"\\]|\\.)*"|\{' + _BLANKS + rb"\}|\[" + _BLANKS + rb"\]|true|false|null|-?[0-9][-+.0-9eE]*)"
_FAR = re.compile(rb"(?:^|[\[{,:])" + _BLANKS + _WHOLE_VALUE + _BLANKS + rb"(?:[,\]}:]|\Z)", re.DOTALL)


class NameTokens:
    """Of a vocabulary (bytes by id). Made in a fifth of a second for a large one.

    `closing`: by the end of a name, the tokens that begin with it and close it. `opening`: by a whole name, the tokens that begin with it,
    quotes included. `several`: the tokens that may begin and close a name behind the end of something else. `longest`: bytes of the longest
    end of a name. What is said of names holds of strings in arrays too. `after_numbers`: the tokens that begin with what ends a number;
    `numeric`: those that end one later on (`ended_numbers`), are a zero (`zeros`), end with one (`later_zeros`), or have an exponent
    (`exponents`; `long_exponents`: of seven digits). `blank`: those of whitespace (`blank_or_begun`: or
    that begin a string and do not end it); `far`: those with a whole value; `closers`: with a
    bracket that closes; `quoted`: with a quote (`quoted_far`, `quoted_closers`, `quoted_numeric`: both); `into`: those that go on behind
    the opening quote of a string (`through`: and end another one first); `escaped`: those with a backslash. `ending`: as `closing`, of
    tokens that close a bracket behind the string, too. `plain`: by their bytes, the tokens that may stand in a string as they are;
    `longest_plain`: bytes of such a token, `longest_token`: of any. `items`: those that end items. `whole_objects`: those in which an
    object opens and closes (`quoted_objects`: behind the end of a string); `later_commas`: with a comma that is not first (`quoted_commas`:
    behind the end of a string, but not at once); `next_begun`: with a comma and what begins a string behind it (`quoted_next`: behind the
    end of one); `quoted_marks`: with a quote, and a comma or a bracket that closes.
    """

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        marked = [(token, text) for token, text in enumerate(vocabulary) if _MARKED.search(text)]
        quoted = [(token, text) for token, text in marked if b'"' in text]
        self.closing = _grouped((token, _closed(text, 0)) for token, text in quoted)
        self.opening = _grouped((token, _closed(text, text.index(b'"') + 1)) for token, text in quoted if text.lstrip(_SPACES)[:1] == b'"')
        self.several = token_set(token for token, text in quoted if _WHOLE.search(text))
        self.after_numbers = token_set(token for token, text in enumerate(vocabulary) if text[:1] in _AFTER_NUMBERS and text)
        self._set_numeric([(token, text) for token, text in enumerate(vocabulary) if _MAYBE_NUMERIC.search(text)])
        self.into = token_set(token for token, text in quoted if _INTO.search(text))
        self.through = token_set(token for token, text in quoted if (end := string_end(text)) >= 0 and _INTO.search(text[end + 1 :]))
        self.escaped = token_set(token for token, text in marked if b"\\" in text)
        self.far = token_set(token for token, text in marked if _has_far(text))
        self.closers = token_set(token for token, text in marked if b"}" in text or b"]" in text)
        self.quoted_far = token_set(token for token in self.far.tokens.tolist() if b'"' in vocabulary[token])
        self.quoted_closers = token_set(token for token in self.closers.tokens.tolist() if b'"' in vocabulary[token])
        self.quoted = token_set(token for token, _ in quoted)
        begun = [(token, text) for token, text in quoted if text.count(b'"') == 1 and text.lstrip()[:1] == b'"']
        self.blank = token_set(token for token, text in enumerate(vocabulary) if text and not text.strip(_SPACES))
        self.blank_or_begun = token_set([*self.blank.tokens.tolist(), *(token for token, _ in begun)])
        self.ending = _grouped((token, _closed(text, 0)) for token, text in quoted if _closes_behind(text))
        self.items = ItemTokens(marked, self.far)
        self.plain = _plain(vocabulary, {*(token for token, _ in quoted), *self.escaped.tokens.tolist()})
        self.longest_plain = max(map(len, self.plain), default=0)
        self.longest_token = max(map(len, vocabulary), default=0)
        self.longest = max(map(len, self.closing), default=0)
        self.quoted_marks = token_set(token for token, text in quoted if any(mark in text for mark in (b",", b"}", b"]")))
        outside = [(token, _without_strings(text)) for token, text in marked]
        behind = [(token, _without_strings(text[string_end(text) + 1 :])) for token, text in quoted if string_end(text) >= 0]
        self.whole_objects, self.quoted_objects = _with(_OBJECT, outside), _with(_OBJECT, behind)
        self.later_commas, self.quoted_commas = _with(_LATER_COMMA, outside), _with(_LATER_COMMA, behind)
        self.next_begun, self.quoted_next = _with(_NEXT, outside), _with(_NEXT, behind)
        self._vocabulary = vocabulary
        self._alike: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
        self._by_first: dict[int, list[int]] = defaultdict(list)
        for token, text in quoted:
            self._by_first[text[0]].append(token)

    def _set_numeric(self, texts: Sequence[tuple[int, bytes]]) -> None:
        def of(pattern: re.Pattern[bytes]) -> TokenSet:
            return token_set(token for token, text in texts if pattern.match(text))

        self.ended_numbers, self.exponents = of(_ENDED_NUMBER), of(_EXPONENT)
        self.zeros, self.later_zeros = of(_ZERO), of(_LATER_ZERO)
        self.long_exponents = token_set(token for token, text in texts if _LONG_EXPONENT.search(text))
        kinds = (self.ended_numbers, self.exponents, self.zeros, self.later_zeros)
        self.numeric = token_set(token for kind in kinds for token in kind.tokens.tolist())
        quoted = {token for token, text in texts if b'"' in text}
        self.quoted_numeric = token_set(token for token in self.numeric.tokens.tolist() if token in quoted)

    def text(self, token: int) -> bytes:
        """The bytes of a token; none for ids without text."""
        return self._vocabulary[token] if 0 <= token < len(self._vocabulary) else b""

    def alike(self, token: int, in_string: bool) -> bytes:
        """The same for all tokens that differ only in space that means nothing: bytes that are read as theirs are."""
        known = self._alike[in_string]
        if token not in known:
            known[token] = without_space(self.text(token), in_string)
        return known[token]

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


def _without_strings(text: bytes) -> bytes:
    """With quotes alone for the strings in it, and an apostrophe for what begins one and does not end it."""
    return _STRING.sub(lambda found: b'""' if found[1] or found[0] == b'"' else b"'", text.replace(b"'", b"_"))


def _with(pattern: re.Pattern[bytes], texts: Iterable[tuple[int, bytes]]) -> TokenSet:
    return token_set(token for token, text in texts if pattern.search(text))


def _has_far(text: bytes) -> bool:
    """Whether it holds a whole value and what comes before or behind it."""
    found = _FAR.search(text)
    return found is not None and any(byte in text for byte in b"[]{},:")


def _closes_behind(text: bytes) -> bool:
    """Whether a bracket closes behind the string that it begins in."""
    end = string_end(text)
    return end >= 0 and (b"}" in text[end:] or b"]" in text[end:])


def _closed(text: bytes, start: int) -> bytes | None:
    """What stands in a token before the closing quote of a string, None where there is none."""
    piece = read(b"", text, start)
    return piece.text if piece.end >= 0 else None


def _plain(vocabulary: Sequence[bytes], but: set[int]) -> dict[bytes, tuple[int, ...]]:
    found: dict[bytes, tuple[int, ...]] = {text: (token,) for token, text in enumerate(vocabulary) if text and token not in but}
    for token, text in enumerate(vocabulary):
        # Few texts have several tokens.
        if text in found and token not in found[text] and token not in but:
            found[text] = (*found[text], token)
    return found


def _grouped(ends: Iterable[tuple[int, bytes | None]]) -> dict[bytes, TokenSet]:
    groups: dict[bytes, list[int]] = defaultdict(list)
    for token, end in ends:
        if end is not None:
            groups[end].append(token)
    return {end: token_set(tokens) for end, tokens in groups.items()}
