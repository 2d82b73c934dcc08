"""JSON strings read piece by piece, as what they stand for: `"a"` and `"\\u0061"` are one name (RFC 8259, sections 7 and 8.3)."""

from __future__ import annotations

import re
from typing import NamedTuple

_SPECIAL = re.compile(rb'["\\]')
_ESCAPE = re.compile(rb'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LOW = re.compile(rb"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_BEGUN_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_BEGUN_LOW = re.compile(rb"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z")
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class Piece(NamedTuple):
    """`text`: what the piece stands for, in UTF-8, where a lone surrogate is as its number would be. `pending`: the start of an escape that
    it ends in. `end`: where the piece has the string's closing quote, -1 where it has not."""

    text: bytes
    pending: bytes
    end: int


def read(pending: bytes, piece: bytes, start: int = 0) -> Piece:
    """More of a string's inside, from `start` on; `pending` as the piece before has left it."""
    if not pending:
        special = _SPECIAL.search(piece, start)
        if special is None:
            return Piece(piece[start:] if start else piece, b"", -1)
        if special[0] == b'"':
            return Piece(piece[start : special.start()], b"", special.start())
    raw = pending + piece[start:]
    found = _unescaped(raw)
    return found if found.end < 0 else Piece(found.text, b"", found.end - len(pending) + start)


def _unescaped(raw: bytes) -> Piece:
    found, at = [], 0
    while at < len(raw):
        special = _SPECIAL.search(raw, at)
        stop = len(raw) if special is None else special.start()
        found.append(raw[at:stop])
        if special is None or special[0] == b'"':
            return Piece(b"".join(found), b"", -1 if special is None else stop)
        if (escape := _ESCAPE.match(raw, stop)) is None:
            if _BEGUN_ESCAPE.match(raw, stop):
                return Piece(b"".join(found), raw[stop:], -1)
            # No JSON: no grammar allows it.
            found.append(raw[stop : stop + 1])
            at = stop + 1
            continue
        text, at = _of_escape(raw, escape)
        if not text:
            return Piece(b"".join(found), raw[stop:], -1)
        found.append(text)
    return Piece(b"".join(found), b"", -1)


def _of_escape(raw: bytes, escape: re.Match[bytes]) -> tuple[bytes, int]:
    """What an escape stands for, and where it ends; nothing where it may be the first half of a pair."""
    code, short = escape.groups()
    if short is not None:
        return _SHORT.get(short, short), escape.end()
    point, end = int(code, 16), escape.end()
    if 0xD800 <= point < 0xDC00:
        if low := _LOW.match(raw, end):
            point, end = 0x10000 + ((point - 0xD800) << 10) + int(low[1], 16) - 0xDC00, low.end()
        elif _BEGUN_LOW.match(raw, end):
            return b"", end
    return chr(point).encode("utf-8", "surrogatepass"), end
