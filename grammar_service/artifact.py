"""Encoded artifacts: what caches hold and what travels.

Layout: magic `MKA` and one format byte, HMAC-SHA-256 (32 bytes) over all that follows, the header's length (4 bytes, little endian),
the header (MessagePack), the payload as the header's codec says. Nothing is used before the MAC holds.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256

import msgspec
import zstandard

from grammar_service.errors import ArtifactError

MAGIC = b"MKA\x01"
_MAC_BYTES = 32
_LENGTH_BYTES = 4
_PREFIX = len(MAGIC) + _MAC_BYTES
MAX_PAYLOAD_BYTES = 1 << 30
CODEC_ZSTD = 1
_ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class ArtifactHeader:
    """What an artifact is for. `payload_bytes` is the expanded size; `created` seconds since the epoch; `codec` how it is packed."""

    key: str
    backend: str
    backend_version: str
    fingerprint: str
    compile_ms: float
    payload_bytes: int
    created: float = 0.0
    codec: int = CODEC_ZSTD


@dataclass(frozen=True, slots=True)
class Artifact:
    header: ArtifactHeader
    payload: bytes


def encode(artifact: Artifact, secret: bytes) -> bytes:
    """The bytes of an artifact, authenticated with `secret`."""
    header = msgspec.msgpack.encode(artifact.header)
    packed = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(artifact.payload)
    body = len(header).to_bytes(_LENGTH_BYTES, "little") + header + packed
    return MAGIC + _mac(secret, body) + body


def authenticate(blob: bytes, secret: bytes, *, key: str, fingerprint: str) -> ArtifactHeader:
    """The header of an authentic blob, without expanding its payload. Raises ArtifactError as `decode` does."""
    return _open(blob, secret, key, fingerprint)[0]


def decode(blob: bytes, secret: bytes, *, key: str, fingerprint: str) -> Artifact:
    """The artifact in `blob`.

    Raises:
        ArtifactError: not ours, damaged, of another format, key, vocabulary or size than it says.
    """
    header, packed = _open(blob, secret, key, fingerprint)
    return Artifact(header, _expand(packed, header))


def _open(blob: bytes, secret: bytes, key: str, fingerprint: str) -> tuple[ArtifactHeader, bytes]:
    if len(blob) < _PREFIX + _LENGTH_BYTES or blob[: len(MAGIC)] != MAGIC:
        raise ArtifactError("not an artifact of this format")
    body = memoryview(blob)[_PREFIX:]
    if not hmac.compare_digest(_mac(secret, body), blob[len(MAGIC) : _PREFIX]):
        raise ArtifactError("the artifact's MAC does not hold")
    header_end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    header = _header(bytes(body[_LENGTH_BYTES:header_end]))
    if header.key != key or header.fingerprint != fingerprint:
        raise ArtifactError("the artifact is for another grammar or vocabulary")
    return header, bytes(body[header_end:])


def _mac(secret: bytes, body: bytes | memoryview) -> bytes:
    return hmac.new(secret, body, sha256).digest()


def _header(data: bytes) -> ArtifactHeader:
    try:
        return msgspec.msgpack.decode(data, type=ArtifactHeader)
    except msgspec.MsgspecError as error:
        raise ArtifactError(f"the artifact's header cannot be read: {error}") from None


def _expand(packed: bytes, header: ArtifactHeader) -> bytes:
    if header.codec != CODEC_ZSTD or not 0 <= header.payload_bytes <= MAX_PAYLOAD_BYTES:
        raise ArtifactError("the artifact's payload is packed in an unknown way, or too large")
    try:
        # The size in the frame decides what is allocated: it must be the authentic header's.
        if zstandard.frame_content_size(packed) != header.payload_bytes:
            raise ArtifactError("the artifact's payload has another size than its header says")
        payload = zstandard.ZstdDecompressor().decompress(packed, max_output_size=header.payload_bytes)
    except zstandard.ZstdError as error:
        raise ArtifactError(f"the artifact's payload cannot be expanded: {error}") from None
    if len(payload) != header.payload_bytes:
        raise ArtifactError("the artifact's payload has another size than its header says")
    return payload
