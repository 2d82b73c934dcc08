"""What a compile replica puts into the caches, and takes out of them: artifacts, and refusals that will not change."""

from __future__ import annotations

import time

from grammar_service.artifacts.artifact import Artifact, ArtifactHeader, AuthenticArtifact, Codec, authenticate, encode
from grammar_service.artifacts.refusals import encode_refusal
from grammar_service.backends import CompiledPayload, backend_named
from grammar_service.errors import ArtifactError, GrammarError
from grammar_service.mac import Secret
from grammar_service.messages import CompileRequest, Refusal

ZSTD_FROM_BYTES = 4096
"""Shorter payloads are stored as they are: somebody waits meanwhile, and at the other end again."""


class Seal:
    """Writes and reads under one secret; `fingerprint` is the tokenizer's, empty until it is known."""

    def __init__(self, secret: Secret, fingerprint: str = "") -> None:
        self._secret = secret
        self.fingerprint = fingerprint

    def artifact(self, request: CompileRequest, payload: CompiledPayload) -> AuthenticArtifact:
        """The artifact of a payload."""
        # Tables are packed already.
        codec = Codec.RAW if payload.expanded_bytes or len(payload.data) < ZSTD_FROM_BYTES else Codec.ZSTD
        return self._sealed(request, payload, codec)

    def refusal(self, request: CompileRequest, error: GrammarError) -> AuthenticArtifact:
        """What is kept in place of an artifact where the grammar can never compile."""
        return self._sealed(request, CompiledPayload(encode_refusal(Refusal.of(error))), Codec.REFUSAL)

    def authentic(self, blob: bytes, key: str) -> AuthenticArtifact | None:
        """What a blob from outside holds, None where that is not an intact artifact of this key and vocabulary."""
        try:
            return authenticate(blob, self._secret, key=key, fingerprint=self.fingerprint)
        except ArtifactError:
            return None

    def _sealed(self, request: CompileRequest, payload: CompiledPayload, codec: Codec) -> AuthenticArtifact:
        header = self._header(request, payload, codec)
        return AuthenticArtifact(encode(Artifact(header, payload.data), self._secret), header)

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
