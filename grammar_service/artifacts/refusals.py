"""Refusals that are kept like artifacts: whoever asks for the grammar again is refused at once."""

from __future__ import annotations

import msgspec

from grammar_service.artifacts.artifact import AuthenticArtifact, Codec
from grammar_service.errors import ArtifactError, GrammarError, InvalidGrammar, MaskcastError, UnsupportedGrammar
from grammar_service.messages import Refusal

LASTING: tuple[type[GrammarError], ...] = (InvalidGrammar, UnsupportedGrammar)
"""Verdicts that another try would only repeat. Time and memory may be there another time, and limits are the operator's to change."""

_REFUSAL = msgspec.msgpack.Decoder(Refusal)
_CODES = frozenset(kind.code for kind in LASTING)


def encode_refusal(refusal: Refusal) -> bytes:
    """The payload of an artifact with the refusal codec."""
    return msgspec.msgpack.encode(refusal)


def refusal_in(artifact: AuthenticArtifact) -> MaskcastError | None:
    """The error to raise in place of an artifact, None where it holds a grammar. Raises ArtifactError as `decode_refusal` does."""
    return decode_refusal(artifact.payload()).error() if artifact.header.codec is Codec.REFUSAL else None


def decode_refusal(payload: bytes | memoryview) -> Refusal:
    """Raises ArtifactError: not a refusal, or not one that lasts."""
    try:
        refusal = _REFUSAL.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the refusal cannot be read: {error}") from None
    if refusal.code not in _CODES:
        raise ArtifactError(f"a refusal for {refusal.code[:40]!r} is not to be kept")
    return refusal
