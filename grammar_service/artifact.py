"""Encoded artifacts: what caches hold and what travels.

Layout: magic `MKA` and one format byte, HMAC-SHA-256 (32 bytes) over all that follows, the header's length (4 bytes, little endian),
the header (MessagePack), the payload as the header's codec says. Nothing is used before the MAC holds, and nothing of another size
than the header says is ever allocated.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

import msgspec

from grammar_service.errors import ArtifactError
from grammar_service.packing import MAX_EXPANDED_BYTES, compress, expand

MAGIC = b"MKA\x02"
_MAC_BYTES = 32
_LENGTH_BYTES = 4
_PREFIX = len(MAGIC) + _MAC_BYTES
MAX_PAYLOAD_BYTES = 64 << 20


class Codec(IntEnum):
    """How a payload is stored, and what it is.

    RAW: a backend's, as it is, since backends pack what repeats itself. ZSTD: a backend's, in one zstd frame.
    REFUSAL: no grammar at all, but why there is none (`grammar_service.refusals`).
    """

    RAW = 0
    ZSTD = 1
    REFUSAL = 2


@dataclass(frozen=True, slots=True)
class ArtifactHeader:
    """What an artifact is for, and what it costs.

    `payload_bytes` is the length of the payload as its backend writes and reads it; `compile_ms`, `load_ms` and `expanded_bytes` are
    those of `CompiledPayload`; `created` is in seconds since the epoch.
    """

    key: str
    backend: str
    backend_version: str
    fingerprint: str
    compile_ms: float
    payload_bytes: int
    load_ms: float = 0.0
    expanded_bytes: int = 0
    created: float = 0.0
    codec: Codec = Codec.RAW


@dataclass(frozen=True, slots=True)
class Artifact:
    header: ArtifactHeader
    payload: bytes


def encode(artifact: Artifact, secret: bytes) -> bytes:
    """The bytes of an artifact, authenticated with `secret`."""
    header = msgspec.msgpack.encode(artifact.header)
    body = len(header).to_bytes(_LENGTH_BYTES, "little") + header + _stored(artifact)
    return MAGIC + _mac(secret, body) + body


def authenticate(blob: bytes, secret: bytes, *, key: str, fingerprint: str, versions: Mapping[str, str] | None = None) -> ArtifactHeader:
    """The header of an authentic blob, without expanding its payload. Raises ArtifactError as `decode` does."""
    return _open(blob, secret, key, fingerprint, versions)[0]


def decode(blob: bytes, secret: bytes, *, key: str, fingerprint: str, versions: Mapping[str, str] | None = None) -> Artifact:
    """The artifact in `blob`. `versions` are those of the backends here, by name; None leaves the check to the key, which names one.

    Raises:
        ArtifactError: not ours, damaged, of another format, key, vocabulary, version or size than it says, or over a bound.
    """
    header, stored = _open(blob, secret, key, fingerprint, versions)
    payload = expand(stored, header.payload_bytes) if header.codec is Codec.ZSTD else stored
    if len(payload) != header.payload_bytes:
        raise ArtifactError(f"the artifact's payload has {len(payload)} bytes, its header says {header.payload_bytes}")
    return Artifact(header, payload)


def _stored(artifact: Artifact) -> bytes:
    if artifact.header.codec is Codec.ZSTD:
        return compress(artifact.payload)
    return artifact.payload


def _open(blob: bytes, secret: bytes, key: str, fingerprint: str, versions: Mapping[str, str] | None) -> tuple[ArtifactHeader, bytes]:
    if len(blob) < _PREFIX + _LENGTH_BYTES or blob[: len(MAGIC)] != MAGIC:
        raise ArtifactError("not an artifact of this format")
    body = memoryview(blob)[_PREFIX:]
    if not hmac.compare_digest(_mac(secret, body), blob[len(MAGIC) : _PREFIX]):
        raise ArtifactError("the artifact's MAC does not hold")
    header_end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    header = _header(bytes(body[_LENGTH_BYTES:header_end]))
    if header.key != key or header.fingerprint != fingerprint:
        raise ArtifactError("the artifact is for another grammar or vocabulary")
    if versions is not None and versions.get(header.backend) != header.backend_version:
        raise ArtifactError(f"the artifact is of {header.backend[:40]} {header.backend_version[:80]}, which is not here")
    return header, bytes(body[header_end:])


def _mac(secret: bytes, body: bytes | memoryview) -> bytes:
    return hmac.new(secret, body, sha256).digest()


def _header(data: bytes) -> ArtifactHeader:
    try:
        header = msgspec.msgpack.decode(data, type=ArtifactHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the artifact's header cannot be read: {error}") from None
    if not (0 <= header.payload_bytes <= MAX_PAYLOAD_BYTES and 0 <= header.expanded_bytes <= MAX_EXPANDED_BYTES):
        raise ArtifactError("the artifact is over the bounds on its size")
    if not all(math.isfinite(cost) and cost >= 0 for cost in (header.compile_ms, header.load_ms, header.created)):
        raise ArtifactError("the artifact's costs are no costs")
    return header
