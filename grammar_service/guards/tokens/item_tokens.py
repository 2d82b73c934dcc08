"""The tokens of a vocabulary that end items, or what items are in, by how many brackets they close.

Most are alike: they close some brackets, and then is nothing but space, a comma, or the beginning of something else. What is true of the
brackets is true of all of those, so that a step asks once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from grammar_service.guards.tokens.token_set import TokenSet, token_set

_BLANKS = rb"[ \t\n\r]*"
_STRING = rb'"(?:[^"\\]|\\.)*"'
_BEGINS = _BLANKS + rb"(?:[{\[]" + _BLANKS + rb')*(?:"(?:[^"\\]|\\.)*\\?)?\Z'
"""Openings, and perhaps a string that does not end."""
_QUIET = re.compile(_BLANKS + rb"(?:(,)(?:" + _BEGINS + rb"))?\Z", re.DOTALL)
_NOTHING_BEGUN = re.compile(_BLANKS + rb"," + _BLANKS + rb"\Z")
_ONLY_CLOSES = re.compile(_BLANKS + rb"(?:[}\]]" + _BLANKS + rb")+", re.DOTALL)
_LEXEME = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_ONE_EMPTY = re.compile(_BLANKS + rb",?" + _BLANKS + rb"(?:(\{)" + _BLANKS + rb"\}|\[" + _BLANKS + rb"\])", re.DOTALL)
_ONE_STRING = re.compile(_BLANKS + _STRING, re.DOTALL)
_COMMA = re.compile(_BLANKS + rb",")
_BEGINS_STRING = re.compile(_BLANKS + rb"," + _BLANKS + rb'"')
_BEGINS_OTHER = re.compile(_BLANKS + rb"," + _BLANKS + rb'[^" \t\n\r]')
_STRING_AND_COMMA = re.compile(_BLANKS + rb",?" + _BLANKS + _STRING + _BLANKS + rb",", re.DOTALL)
_STRING_END = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)


class Closing(NamedTuple):
    """Tokens that close so many brackets, at least. `plain`: by doing nothing else before; of those, `comma`: a comma follows, `begun`: and
    what begins another value; `deeper`: more brackets are closed, then nothing or the same. `more`: they do anything else behind or
    before, save the end of a string that they hold a part of."""

    plain: TokenSet
    comma: TokenSet
    begun: TokenSet
    deeper: TokenSet
    more: TokenSet


class ItemTokens:
    """`marked` are the tokens with a quote, a bracket, or a comma.

    `outside`: by brackets, from one on, of tokens that do not begin in a string. `in_string`: the same of those that do, and end it at
    once; among `more` are those that end it later. `behind_string`: the same, whether they end it at once or later.

    `empty_objects`, `empty_arrays`: the tokens that are one of these and do nothing else of interest, `beyond`: those of some tokens that
    are neither, nor a single string. `beyond_string`: that end a string, and do something of interest behind it. `comma`: with a comma
    first; `string_and_comma`: with a whole string first and a comma behind it; `end_and_comma`: with one behind the end of a string.
    `begins_string`, `begins_other`: that begin another value behind a comma; `end_begins_string`, `end_begins_other`: behind the end of a
    string and a comma.
    """

    def __init__(self, marked: Sequence[tuple[int, bytes]], far: TokenSet) -> None:
        vocabulary = dict(marked)
        texts = [(token, text) for token, text in marked if b"}" in text or b"]" in text]
        self.outside = _closing([(token, text, False) for token, text in texts])
        ending = [(token, text, end) for token, text in texts if (end := string_end(text)) >= 0]
        self.in_string = _closing([(token, text[end + 1 :], end > 0) for token, text, end in ending])
        self.behind_string = _closing([(token, text[end + 1 :], False) for token, text, end in ending])
        ones = [(token, found) for token in far.tokens.tolist() if (found := _only_empty(vocabulary[token])) is not None]
        self.empty_objects = token_set(token for token, found in ones if found[1])
        self.empty_arrays = token_set(token for token, found in ones if not found[1])
        known = {token for token, _ in ones}
        self.beyond = token_set(token for token in far.tokens.tolist() if token not in known and not _is_one_string(vocabulary[token]))
        quoted = [(token, text) for token, text in marked if b'"' in text]
        self.beyond_string = token_set(token for token, text in quoted if not _ends_quietly(text))
        self.comma = token_set(token for token, text in marked if _COMMA.match(text))
        self.begins_string = token_set(token for token, text in quoted if _BEGINS_STRING.match(text))
        self.begins_other = token_set(token for token in self.comma.tokens.tolist() if _BEGINS_OTHER.match(vocabulary[token]))
        self.string_and_comma = token_set(token for token, text in quoted if _STRING_AND_COMMA.match(text))
        ends = [(token, text, end + 1) for token, text in quoted if (end := string_end(text)) >= 0]
        self.end_and_comma = token_set(token for token, text, at in ends if _COMMA.match(text, at))
        self.end_begins_string = token_set(token for token, text, at in ends if _BEGINS_STRING.match(text, at))
        self.end_begins_other = token_set(token for token, text, at in ends if _BEGINS_OTHER.match(text, at))


_MEANT = re.compile(
    _BLANKS + rb'(?:("(?:[^"\\]|\\.)*")' + _BLANKS + rb'|("(?:[^"\\]|\\.)*\\?\Z)|([{}\[\]:,])' + _BLANKS + rb"|)", re.DOTALL
)


def without_space(text: bytes, in_string: bool) -> bytes:
    """A token with no more space than it needs to be read alike, where it begins in a string, or outside of all."""
    start = string_end(text) + 1 if in_string else 0
    if in_string and not start:
        return text
    return text[:start] + _MEANT.sub(_meant, text[start:])


def _meant(found: re.Match[bytes]) -> bytes:
    return found[1] or found[2] or found[3] or (b" " if found[0] else b"")


def string_end(text: bytes) -> int:
    """Where a string that the text begins in ends, -1 where it does not."""
    found = _STRING_END.match(text)
    return -1 if found is None else found.end() - 1


def _closing(texts: Sequence[tuple[int, bytes, bool]]) -> tuple[Closing, ...]:
    """`texts`: outside of strings; True: not all of the token is looked at where nothing else comes before."""
    fallen = [(token, text, late, _falls(text)) for token, text, late in texts]
    return tuple(_closing_so(levels, fallen) for levels in range(1, max((falls for *_, falls in fallen), default=0) + 1))


def _closing_so(levels: int, texts: Sequence[tuple[int, bytes, bool, int]]) -> Closing:
    sets: dict[str, list[int]] = {name: [] for name in Closing._fields}
    for token, text, late, falls in texts:
        if falls < levels:
            continue
        if (rest := _behind(text, levels)) is None:
            sets["more"].append(token)
        elif not late:
            sets["plain"].append(token)
            if kind := _kind(rest):
                sets[kind].append(token)
    return Closing(**{name: token_set(tokens) for name, tokens in sets.items()})


def _kind(rest: bytes) -> str:
    """Of a plain token, what comes behind its brackets; nothing where that is nothing."""
    if quiet := _QUIET.match(rest):
        return "" if quiet[1] is None else "comma" if _NOTHING_BEGUN.match(rest) else "begun"
    closes = _ONLY_CLOSES.match(rest)
    return "deeper" if closes and _QUIET.match(rest, closes.end()) else "more"


def _behind(text: bytes, levels: int) -> bytes | None:
    """What comes behind as many brackets that close, None where something else comes before."""
    for at, byte in enumerate(text):
        if byte in b"}]":
            levels -= 1
            if not levels:
                return text[at + 1 :]
        elif byte not in b" \t\n\r":
            return None
    return None


def _falls(text: bytes) -> int:
    """How many more brackets it closes than it has opened, at most."""
    level = lowest = 0
    for found in _LEXEME.finditer(text):
        level += (found[0] in (b"{", b"[")) - (found[0] in (b"}", b"]"))
        lowest = min(lowest, level)
    return -lowest


def _only_empty(text: bytes) -> re.Match[bytes] | None:
    found = _ONE_EMPTY.match(text)
    return found if found is not None and _QUIET.match(text, found.end()) else None


def _is_one_string(text: bytes) -> bool:
    found = _ONE_STRING.match(text)
    return found is not None and _QUIET.match(text, found.end()) is not None


def _ends_quietly(text: bytes) -> bool:
    """Whether nothing of interest comes behind a string that the text begins in: nothing, the beginning of another value, or the end of
    what holds it."""
    end = string_end(text)
    closes = _ONLY_CLOSES.match(text, end + 1)
    return end < 0 or _QUIET.match(text, closes.end() if closes else end + 1) is not None
