"""What a compile replica puts into the caches, and takes out of them: artifacts, and refusals that will not change."""

from __future__ import annotations

import time

from grammar_service.artifact import Artifact, ArtifactHeader, Codec, authenticate, decode, encode
from grammar_service.backends import CompiledPayload, backend_named
from grammar_service.errors import ArtifactError, GrammarError, MaskcastError
from grammar_service.messages import CompileRequest, Refusal
from grammar_service.refusals import decode_refusal, encode_refusal

ZSTD_FROM_BYTES = 4096
"""Shorter payloads are stored as they are: somebody waits meanwhile, and at the other end again."""


class Seal:
    """Writes and reads under one secret; `fingerprint` is the tokenizer's, empty until it is known."""

    def __init__(self, secret: bytes, fingerprint: str = "") -> None:
        self._secret = secret
        self.fingerprint = fingerprint

    def artifact(self, request: CompileRequest, payload: CompiledPayload) -> bytes:
        """The encoded artifact of a payload."""
        # Tables are packed already.
        codec = Codec.RAW if payload.expanded_bytes or len(payload.data) < ZSTD_FROM_BYTES else Codec.ZSTD
        return encode(Artifact(self._header(request, payload, codec), payload.data), self._secret)

    def refusal(self, request: CompileRequest, error: GrammarError) -> bytes:
        """What is kept in place of an artifact where the grammar can never compile."""
        payload = CompiledPayload(encode_refusal(Refusal.of(error)))
        return encode(Artifact(self._header(request, payload, Codec.REFUSAL), payload.data), self._secret)

    def is_intact(self, blob: bytes, key: str) -> bool:
        try:
            authenticate(blob, self._secret, key=key, fingerprint=self.fingerprint)
        except ArtifactError:
            return False
        return True

    def refusal_in(self, blob: bytes, key: str) -> MaskcastError | None:
        """The refusal in an intact blob, None where it holds a grammar."""
        if authenticate(blob, self._secret, key=key, fingerprint=self.fingerprint).codec is not Codec.REFUSAL:
            return None
        return decode_refusal(self.opened(blob, key).payload).error()

    def opened(self, blob: bytes, key: str) -> Artifact:
        """The artifact in a blob. Raises ArtifactError."""
        return decode(blob, self._secret, key=key, fingerprint=self.fingerprint)

    def _header(self, request: CompileRequest, payload: CompiledPayload, codec: Codec) -> ArtifactHeader:
        return ArtifactHeader(
            key=request.key,
            backend=request.backend,
            backend_version=backend_named(request.backend).version,
            fingerprint=self.fingerprint,
            compile_ms=payload.compile_ms,
            load_ms=payload.load_ms,
            payload_bytes=len(payload.data),
            expanded_bytes=payload.expanded_bytes,
            created=time.time(),
            codec=codec,
        )
