"""What a name stands for, and the bytes in which that is kept.

Layout: magic `MKR` and one format byte, HMAC-SHA-256 (32 bytes) over the place where the entry is kept and all that follows, the entry
(MessagePack). Nothing is read before the MAC holds. The place is part of it, so that whoever can write to the store cannot give a
name another name's meaning; he can take entries away, and put back what once stood under the same name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from grammar_service.errors import EntryError
from grammar_service.mac import MAC_BYTES, Secret, holds, mac_of
from grammar_service.spec import GrammarSpec
from grammar_service.warning import ConstraintWarning

MAX_ID_LENGTH = 64
_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_ID_LENGTH}}}")

MAGIC = b"MKR\x01"
_PREFIX = len(MAGIC) + MAC_BYTES
OVERHEAD_BYTES = 8192
"""More than an entry takes beyond the text of its constraint."""


@dataclass(frozen=True, slots=True)
class ResolvedAs:
    """What came of the spec of an entry: its key on a backend, None where none enforces it. `by` whoever resolves by the same rules
    (`resolve.rules_of`) finds the same, and need not ask again."""

    by: str
    key: str | None = None
    backend: str | None = None
    warnings: tuple[ConstraintWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class GrammarEntry:
    """A named constraint; `created` in seconds since the epoch; `tenant` has registered it, and nobody else sees it."""

    id: str
    spec: GrammarSpec
    created: int
    resolved: ResolvedAs | None = None
    tenant: str = ""


ENTRY = msgspec.msgpack.Decoder(GrammarEntry)


def is_valid_id(name: str) -> bool:
    """1 to 64 letters, digits, dots, underscores and hyphens, all of ASCII."""
    return _ID.fullmatch(name) is not None


def seal(entry: GrammarEntry, place: str, secret: Secret) -> bytes:
    """The entry as bytes that `unseal` takes only from the same place, with the same secret."""
    body = msgspec.msgpack.encode(entry)
    return MAGIC + mac_of(secret, _context(place), body) + body


def unseal(data: bytes, place: str, secret: Secret) -> GrammarEntry:
    """The entry in `data`.

    Raises:
        EntryError: not ours, damaged, of another format, or from another place.
    """
    if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
        raise EntryError("not an entry of this format")
    body = data[_PREFIX:]
    if not holds(data[len(MAGIC) : _PREFIX], secret, _context(place), body):
        raise EntryError("the entry's MAC does not hold")
    try:
        return ENTRY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise EntryError(f"the entry cannot be read: {error}") from None


def _context(place: str) -> bytes:
    where = place.encode("utf-8")
    # The length keeps the place and the body apart; the magic keeps this MAC apart from those of other formats.
    return MAGIC + len(where).to_bytes(4, "little") + where
