"""The regexes that tokenizers cut texts with, read by an allow-list; what a class matches is for the tokenizer's own engine to say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grammar_service.errors import UnsupportedGrammar

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What `ByteLevel` cuts by."""
WHOLE = r"[\s\S]+"
"""One piece."""
_CLASS = r"\[\^?(?:\\[pP]\{\w+\}|\\.|[^\\\[\]])+\]|\\[pP]\{\w+\}|\\[sSdDwWrntvf]|\\[^\w]|[^\\\[\](){}|*+?.^$]"
_ONE = re.compile(_CLASS)
_NOT_AHEAD = re.compile(rf"\(\?!({_CLASS})\)")
_WORDS = re.compile(r"\(\?i:([^()\[\]\\{}*+?.^$]+)\)")
_COUNT = re.compile(r"[?*+]|\{(\d+)(?:(,)(\d*))?\}")
_COUNTS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
MAX_COUNT = 16


@dataclass(frozen=True, slots=True)
class One:
    """A character of a class, which is written as the engine reads it."""

    written: str


@dataclass(frozen=True, slots=True)
class NotAhead:
    """No character of a class comes next."""

    written: str


@dataclass(frozen=True, slots=True)
class Words:
    """One of some words, by the classes of their letters."""

    words: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """As many as can be: an item from `least` to `most` times, None: any number."""

    item: One | NotAhead | Words
    least: int = 1
    most: int | None = 1


Branch = tuple[Counted, ...]


def parse_pattern(text: str) -> tuple[Branch, ...]:
    """The branches in the order in which they are tried. Raises UnsupportedGrammar: something else stands in it."""
    branches: list[Branch] = []
    parts: list[Counted] = []
    at = 0
    while at < len(text):
        if text[at] == "|":
            branches.append(tuple(parts))
            parts = []
            at += 1
            continue
        item, at = _item(text, at)
        least, most, at = _count(text, at)
        if isinstance(item, NotAhead) and (least, most) != (1, 1):
            raise _not_read(text, at)
        parts.append(Counted(item, least, most))
    return (*branches, tuple(parts))


def classes_of(branches: tuple[Branch, ...]) -> list[str]:
    """All classes, each once."""
    written: list[str] = []
    for branch in branches:
        for part in branch:
            written += [letter for word in part.item.words for letter in word] if isinstance(part.item, Words) else [part.item.written]
    return list(dict.fromkeys(written))


def _item(text: str, at: int) -> tuple[One | NotAhead | Words, int]:
    if match := _NOT_AHEAD.match(text, at):
        return NotAhead(match[1]), match.end()
    if match := _WORDS.match(text, at):
        return Words(tuple(tuple(f"(?i:{letter})" for letter in word) for word in match[1].split("|"))), match.end()
    if match := _ONE.match(text, at):
        return One(match.group()), match.end()
    raise _not_read(text, at)


def _count(text: str, at: int) -> tuple[int, int | None, int]:
    match = _COUNT.match(text, at)
    if not match:
        return 1, 1, at
    end = match.end()
    if match.group() in _COUNTS:
        least, most = _COUNTS[match.group()]
    else:
        least = int(match[1])
        most = least if not match[2] else int(match[3]) if match[3] else None
    if max(least, most or 0) > MAX_COUNT or text[end : end + 1] in ("?", "+", "*"):
        raise _not_read(text, end)
    return least, most, end


def _not_read(text: str, at: int) -> UnsupportedGrammar:
    return UnsupportedGrammar(f"the tokenizer cuts texts by a regex that is not followed, from {text[at : at + 12]!r} on")
