from __future__ import annotations

import hmac
from dataclasses import replace
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.artifact import MAGIC, Artifact, ArtifactHeader, authenticate, decode, encode
from grammar_service.errors import ArtifactError

SECRET = b"secret"


def artifact(payload: bytes = b"payload" * 100) -> Artifact:
    return Artifact(ArtifactHeader("k", "xgrammar", "1/v1", "f", 1.5, len(payload), 3.0), payload)


def opened(blob: bytes, secret: bytes = SECRET, key: str = "k", fingerprint: str = "f") -> Artifact:
    return decode(blob, secret, key=key, fingerprint=fingerprint)


@given(st.binary(max_size=500))
def test_what_is_encoded_is_decoded(payload: bytes) -> None:
    assert opened(encode(artifact(payload), SECRET)) == artifact(payload)


def test_header_is_readable_without_the_payload() -> None:
    assert authenticate(encode(artifact(), SECRET), SECRET, key="k", fingerprint="f") == artifact().header


@given(st.data())
def test_any_flipped_bit_is_an_artifact_error(data: st.DataObject) -> None:
    blob = bytearray(encode(artifact(), SECRET))
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ArtifactError):
        opened(bytes(blob))


@given(st.integers(0, 200))
def test_any_truncation_is_an_artifact_error(length: int) -> None:
    blob = encode(artifact(), SECRET)
    with pytest.raises(ArtifactError):
        opened(blob[: min(length, len(blob) - 1)])


@given(st.binary(max_size=300))
def test_rubbish_is_an_artifact_error(blob: bytes) -> None:
    for candidate in (blob, MAGIC + blob):
        with pytest.raises(ArtifactError):
            opened(candidate)


def test_another_secret_key_or_vocabulary_is_an_artifact_error() -> None:
    blob = encode(artifact(), SECRET)
    for secret, key, fingerprint in ((b"other", "k", "f"), (SECRET, "l", "f"), (SECRET, "k", "g")):
        with pytest.raises(ArtifactError):
            opened(blob, secret, key, fingerprint)


def signed(body: bytes) -> bytes:
    return MAGIC + hmac.new(SECRET, body, sha256).digest() + body


def test_authentic_but_impossible_content_is_an_artifact_error() -> None:
    real = encode(artifact(), SECRET)[len(MAGIC) + 32 :]
    header_end = 4 + int.from_bytes(real[:4], "little")
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    for body in (real[:header_end] + bomb, real[:header_end] + b"no zstd", b"\xff\xff\xff\xff" + real[4:], b"\x01\0\0\0\xc1"):
        with pytest.raises(ArtifactError):
            opened(signed(body))


def test_an_unknown_codec_or_a_lying_size_is_an_artifact_error() -> None:
    for header in (
        replace(artifact().header, codec=9),
        replace(artifact().header, payload_bytes=1),
        replace(artifact().header, payload_bytes=-1),
    ):
        with pytest.raises(ArtifactError):
            opened(encode(Artifact(header, artifact().payload), SECRET))
