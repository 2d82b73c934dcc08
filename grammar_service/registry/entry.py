"""What a name stands for, and the bytes in which that is kept.

Layout: magic `MKR` and one format byte, HMAC-SHA-256 (32 bytes) over the place where the entry is kept and all that follows, the entry
(MessagePack). Nothing is read before the MAC holds. The place is part of it, so that whoever can write to the store cannot give a
name another name's meaning; he can take entries away, and put back what once stood under the same name.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from grammar_service.errors import EntryError
from grammar_service.spec import GrammarSpec

MAX_ID_LENGTH = 64
_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_ID_LENGTH}}}")

MAGIC = b"MKR\x01"
_MAC_BYTES = 32
_PREFIX = len(MAGIC) + _MAC_BYTES
OVERHEAD_BYTES = 1024
"""More than an entry takes beyond the text of its constraint."""


@dataclass(frozen=True, slots=True)
class GrammarEntry:
    """A named constraint; `created` in seconds since the epoch; `tenant` has registered it, and nobody else sees it."""

    id: str
    spec: GrammarSpec
    created: int
    tenant: str = ""


def is_valid_id(name: str) -> bool:
    """1 to 64 letters, digits, dots, underscores and hyphens, all of ASCII."""
    return _ID.fullmatch(name) is not None


def seal(entry: GrammarEntry, place: str, secret: bytes) -> bytes:
    """The entry as bytes that `unseal` takes only from the same place, with the same secret."""
    body = msgspec.msgpack.encode(entry)
    return MAGIC + _mac(body, place, secret) + body


def unseal(data: bytes, place: str, secret: bytes) -> GrammarEntry:
    """The entry in `data`.

    Raises:
        EntryError: not ours, damaged, of another format, or from another place.
    """
    if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
        raise EntryError("not an entry of this format")
    body = data[_PREFIX:]
    if not hmac.compare_digest(_mac(body, place, secret), data[len(MAGIC) : _PREFIX]):
        raise EntryError("the entry's MAC does not hold")
    try:
        return msgspec.msgpack.decode(body, type=GrammarEntry)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise EntryError(f"the entry cannot be read: {error}") from None


def _mac(body: bytes, place: str, secret: bytes) -> bytes:
    where = place.encode("utf-8")
    # The length keeps the place and the body apart; the magic keeps this MAC apart from those of other formats.
    return hmac.new(secret, MAGIC + len(where).to_bytes(4, "little") + where + body, sha256).digest()
