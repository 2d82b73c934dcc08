"""Encoded artifacts: what caches hold and what travels.

Layout: magic `MKA` and one format byte, HMAC-SHA-256 (32 bytes) over the magic and all that follows, the header's length (4 bytes, little
endian), the header (MessagePack), the payload as the header's codec says. Nothing is used before the MAC holds, and nothing of another size
than the header says is ever allocated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from grammar_service.errors import ArtifactError
from grammar_service.mac import MAC_BYTES, Secret, holds, mac_of
from grammar_service.packing import MAX_EXPANDED_BYTES, compress, expand

MAGIC = b"MKA\x03"
_LENGTH_BYTES = 4
_PREFIX = len(MAGIC) + MAC_BYTES
MAX_PAYLOAD_BYTES = 64 << 20


class Codec(IntEnum):
    """How a payload is stored, and what it is.

    RAW: a backend's, as it is, since backends pack what repeats itself. ZSTD: a backend's, in one zstd frame.
    REFUSAL: no grammar at all, but why there is none (`grammar_service.artifacts.refusals`).
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


_HEADER = msgspec.msgpack.Decoder(ArtifactHeader)


@dataclass(frozen=True, slots=True)
class Artifact:
    header: ArtifactHeader
    payload: bytes


@dataclass(frozen=True, slots=True)
class AuthenticArtifact:
    """An encoded artifact and its header. Only `authenticate` makes one of bytes from outside, so that nobody has to check them again.

    Its length is that of the blob, in bytes.
    """

    blob: bytes
    header: ArtifactHeader

    def __len__(self) -> int:
        return len(self.blob)

    def payload(self) -> bytes | memoryview:
        """As its backend wrote it: a view of the blob, where it is stored as it is.

        Raises:
            ArtifactError: it cannot be expanded, or is of another size than the header says.
        """
        body = memoryview(self.blob)[_PREFIX:]
        stored = body[_header_end(body) :]
        payload = expand(stored, self.header.payload_bytes) if self.header.codec is Codec.ZSTD else stored
        if len(payload) != self.header.payload_bytes:
            raise ArtifactError(f"the artifact's payload has {len(payload)} bytes, its header says {self.header.payload_bytes}")
        return payload


def encode(artifact: Artifact, secret: Secret) -> bytes:
    """The bytes of an artifact, authenticated with `secret`."""
    header = msgspec.msgpack.encode(artifact.header)
    body = len(header).to_bytes(_LENGTH_BYTES, "little") + header + _stored(artifact)
    return MAGIC + mac_of(secret, MAGIC, body) + body


def authenticate(blob: bytes, secret: Secret, *, key: str, fingerprint: str) -> AuthenticArtifact:
    """The blob with its header, whose key names the version of its backend. Costs time linear in its bytes; expands nothing.

    Raises:
        ArtifactError: not ours, damaged, of another format, key or vocabulary, or over a bound.
    """
    if len(blob) < _PREFIX + _LENGTH_BYTES or blob[: len(MAGIC)] != MAGIC:
        raise ArtifactError("not an artifact of this format")
    body = memoryview(blob)[_PREFIX:]
    if not holds(blob[len(MAGIC) : _PREFIX], secret, MAGIC, body):
        raise ArtifactError("the artifact's MAC does not hold")
    header = _header(bytes(body[_LENGTH_BYTES : _header_end(body)]))
    if header.key != key or header.fingerprint != fingerprint:
        raise ArtifactError("the artifact is for another grammar or vocabulary")
    return AuthenticArtifact(blob, header)


def decode(blob: bytes, secret: Secret, *, key: str, fingerprint: str) -> Artifact:
    """The artifact in a blob that nobody has looked at. Raises ArtifactError as `authenticate` and `AuthenticArtifact.payload` do."""
    authentic = authenticate(blob, secret, key=key, fingerprint=fingerprint)
    return Artifact(authentic.header, bytes(authentic.payload()))


def _stored(artifact: Artifact) -> bytes:
    if artifact.header.codec is Codec.ZSTD:
        return compress(artifact.payload)
    return artifact.payload


def _header_end(body: memoryview) -> int:
    return _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")


def _header(data: bytes) -> ArtifactHeader:
    try:
        header = _HEADER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the artifact's header cannot be read: {error}") from None
    if not (0 <= header.payload_bytes <= MAX_PAYLOAD_BYTES and 0 <= header.expanded_bytes <= MAX_EXPANDED_BYTES):
        raise ArtifactError("the artifact is over the bounds on its size")
    if not all(math.isfinite(cost) and cost >= 0 for cost in (header.compile_ms, header.load_ms, header.created)):
        raise ArtifactError("the artifact's costs are no costs")
    return header
