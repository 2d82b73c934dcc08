"""Long texts that repeat themselves, packed: xgrammar's serialization holds one automaton again for each rule.

Layout: one format byte, one zstd frame of the text in UTF-8 (none for no text). Matches over the whole text find the repetitions at
the speed of copying, so that they need no form of their own.
"""

from __future__ import annotations

import zstandard

from grammar_service.errors import ArtifactError

MAX_EXPANDED_BYTES = 64 << 20
"""Tables that would be larger as text are never written: reading them takes seconds, and twenty times as much memory."""

_FORMAT = b"\x01"
_LEVEL = 7
_MIN_MATCH = 6
"""Shorter matches are not looked for: a token's number, with its comma, has six or seven characters, and parts of numbers are cheaper
as they are. Faster than with the level's own bound, and smaller."""
_WINDOW_LOG = 26
"""The window is 64 MiB; a decoder keeps none, since it writes the whole text at once."""


def pack(text: str) -> bytes:
    """The text in few bytes. Raises UnicodeEncodeError: it holds lone surrogates."""
    return _FORMAT + compress(text.encode("utf-8"))


def unpack(packed: bytes, max_bytes: int) -> str:
    """The text that was packed; nothing over `max_bytes` (of its UTF-8) is ever allocated.

    Raises:
        ArtifactError: not packed here, damaged, or larger than that.
    """
    if packed[:1] != _FORMAT:
        raise ArtifactError("the text is packed in an unknown way")
    try:
        return expand(memoryview(packed)[1:], max_bytes).decode("utf-8")
    except UnicodeDecodeError:
        raise ArtifactError("the packed text is not UTF-8") from None


def compress(data: bytes) -> bytes:
    """One zstd frame of known size; nothing for nothing."""
    if not data:
        # The decoder looks at nothing but the size of an empty frame, so that anything could follow it.
        return b""
    window = min(_WINDOW_LOG, max(len(data).bit_length(), zstandard.WINDOWLOG_MIN))
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, source_size=len(data), window_log=window, min_match=_MIN_MATCH)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def expand(frame: bytes | memoryview, max_bytes: int) -> bytes:
    """What was compressed. Raises ArtifactError as `unpack` does."""
    if not frame:
        return b""
    try:
        # The size in the frame decides what is allocated.
        size = zstandard.frame_content_size(frame)
        if not 0 < size <= max_bytes:
            raise ArtifactError(f"the packed bytes expand to {size}, the limit is {max_bytes}")
        data = zstandard.ZstdDecompressor().decompress(frame, max_output_size=max_bytes, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ArtifactError(f"the packed bytes cannot be expanded: {error}") from None
    if len(data) != size:
        raise ArtifactError(f"the packed bytes expand to {len(data)}, their frame says {size}")
    return data
