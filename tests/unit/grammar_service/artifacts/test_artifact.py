from __future__ import annotations

import hmac
import tracemalloc
from dataclasses import FrozenInstanceError, asdict, replace
from hashlib import sha256
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.artifacts.artifact import MAGIC, Artifact, ArtifactHeader, AuthenticArtifact, Codec, authenticate, decode, encode
from grammar_service.errors import ArtifactError
from grammar_service.mac import Secret

SECRET = b"secret"
MAC_BYTES = 32
CODECS = st.sampled_from(Codec)


def artifact(payload: bytes = b"payload" * 100, codec: Codec = Codec.RAW) -> Artifact:
    header = ArtifactHeader("k", "xgrammar", "1/v1", "f", 1.5, len(payload), load_ms=0.5, expanded_bytes=9000, created=3.0, codec=codec)
    return Artifact(header, payload)


def opened(blob: bytes, secret: Secret = SECRET, key: str = "k", fingerprint: str = "f") -> Artifact:
    return decode(blob, secret, key=key, fingerprint=fingerprint)


def authenticated(codec: Codec = Codec.RAW) -> AuthenticArtifact:
    return authenticate(encode(artifact(codec=codec), SECRET), SECRET, key="k", fingerprint="f")


def signed(body: bytes) -> bytes:
    return MAGIC + hmac.new(SECRET, MAGIC + body, sha256).digest() + body


def with_header(stored: bytes, **changes: Any) -> bytes:
    """An authentic blob whose header says what it likes."""
    header = msgspec.msgpack.encode({**asdict(artifact().header), **changes})
    return signed(len(header).to_bytes(4, "little") + header + stored)


def test_the_format_is_authenticated_too() -> None:
    body = encode(artifact(), SECRET)[len(MAGIC) + MAC_BYTES :]
    with pytest.raises(ArtifactError, match="MAC"):
        opened(MAGIC + hmac.new(SECRET, body, sha256).digest() + body)


def test_while_a_secret_is_changed_both_are_believed_and_the_first_seals() -> None:
    old, new = encode(artifact(), b"old"), encode(artifact(), (b"new", b"old"))
    for both in ((b"new", b"old"), (b"old", b"new")):
        assert opened(old, both) == opened(new, both) == artifact()
    assert opened(new, b"new") == artifact()
    for blob, secret in ((new, b"old"), (old, b"new")):
        with pytest.raises(ArtifactError, match="MAC"):
            opened(blob, secret)


@given(st.binary(max_size=500), CODECS)
def test_what_is_encoded_is_decoded(payload: bytes, codec: Codec) -> None:
    assert opened(encode(artifact(payload, codec), SECRET)) == artifact(payload, codec)


def test_header_is_readable_without_the_payload() -> None:
    assert authenticated().header == artifact().header


def test_a_payload_that_is_stored_as_it_is_is_not_copied() -> None:
    raw, packed = (authenticated(codec) for codec in (Codec.RAW, Codec.ZSTD))
    assert raw.payload() == packed.payload() == artifact().payload
    view = raw.payload()
    assert isinstance(view, memoryview)
    assert view.obj is raw.blob
    assert view.readonly


def test_what_is_known_of_an_authentic_artifact_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        authenticated().header.codec = Codec.REFUSAL  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        authenticated().blob = b""  # type: ignore[misc]


def test_a_raw_payload_is_stored_as_it_is_and_a_long_text_packed() -> None:
    raw, packed = (len(encode(artifact(b"text " * 2000, codec), SECRET)) for codec in (Codec.RAW, Codec.ZSTD))
    assert raw > 10_000
    assert packed < 1000


@given(st.data(), CODECS)
def test_any_changed_byte_is_refused(data: st.DataObject, codec: Codec) -> None:
    blob = bytearray(encode(artifact(codec=codec), SECRET))
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ArtifactError):
        opened(bytes(blob))


@given(st.data(), CODECS)
def test_any_cut_is_refused(data: st.DataObject, codec: Codec) -> None:
    blob = encode(artifact(codec=codec), SECRET)
    start = data.draw(st.integers(0, len(blob) - 1))
    end = data.draw(st.integers(start + 1, len(blob)))
    with pytest.raises(ArtifactError):
        opened(blob[:start] + blob[end:])


@given(st.data(), st.binary(min_size=1, max_size=50), CODECS)
def test_any_added_bytes_are_refused(data: st.DataObject, added: bytes, codec: Codec) -> None:
    blob = encode(artifact(codec=codec), SECRET)
    at = data.draw(st.integers(0, len(blob)))
    longer = blob[:at] + added + blob[at:]
    with pytest.raises(ArtifactError):
        opened(longer)


@given(st.binary(max_size=300))
def test_rubbish_is_refused(blob: bytes) -> None:
    for candidate in (blob, MAGIC + blob, MAGIC + bytes(MAC_BYTES) + blob):
        with pytest.raises(ArtifactError):
            opened(candidate)


@given(st.binary(max_size=300))
def test_authentic_rubbish_is_refused(body: bytes) -> None:
    for candidate in (body, len(body).to_bytes(4, "little") + body):
        with pytest.raises(ArtifactError):
            opened(signed(candidate))


def test_another_secret_key_vocabulary_or_format_is_refused() -> None:
    blob = encode(artifact(), SECRET)
    for secret, key, fingerprint in ((b"other", "k", "f"), (SECRET, "l", "f"), (SECRET, "k", "g")):
        with pytest.raises(ArtifactError):
            opened(blob, secret, key, fingerprint)
    with pytest.raises(ArtifactError, match="format"):
        opened(b"MKA\x01" + blob[len(MAGIC) :])


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [-1, 0, 1, 699, 701, 1 << 26, 1 << 40])
def test_an_authentic_header_with_a_lying_size_is_refused(codec: Codec, size: int) -> None:
    honest = artifact(codec=codec)
    with pytest.raises(ArtifactError):
        opened(encode(replace(honest, header=replace(honest.header, payload_bytes=size)), SECRET))


@pytest.mark.parametrize("size", [50_000_000, 1 << 40])
def test_an_authentic_bomb_is_refused_without_being_expanded(size: int) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    small, large = with_header(bomb, payload_bytes=700, codec=Codec.ZSTD), with_header(bomb, payload_bytes=size + 1, codec=Codec.ZSTD)
    for blob in (small, with_header(bomb[:-9], payload_bytes=700, codec=Codec.ZSTD), *([large] if size > 1 << 30 else [])):
        tracemalloc.start()
        try:
            with pytest.raises(ArtifactError):
                opened(blob)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    "changes",
    [
        {"codec": 9},
        {"codec": "raw"},
        {"payload_bytes": None},
        {"expanded_bytes": 1 << 40},
        {"expanded_bytes": -1},
        {"compile_ms": float("nan")},
        {"load_ms": float("inf")},
        {"created": -1.0},
        {"backend": 5},
        {"key": "other"},
    ],
)
def test_an_authentic_header_with_an_impossible_field_is_refused(changes: dict[str, Any]) -> None:
    payload = artifact().payload
    assert opened(with_header(payload)) == artifact()
    with pytest.raises(ArtifactError):
        opened(with_header(payload, **changes))


def test_an_authentic_header_of_impossible_length_is_refused() -> None:
    real = encode(artifact(), SECRET)[len(MAGIC) + MAC_BYTES :]
    for body in (b"\xff\xff\xff\xff" + real[4:], b"\0\0\0\0" + real[4:], b"\x01\0\0\0\xc1"):
        with pytest.raises(ArtifactError):
            opened(signed(body))
