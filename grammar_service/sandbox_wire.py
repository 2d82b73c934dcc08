"""Messages between the sandbox and its child: frames of a 4-byte little-endian length and a MessagePack body."""

from __future__ import annotations

from typing import BinaryIO, TypeVar

import msgspec

from grammar_service.errors import ArtifactError

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 1 << 30


class Setup(msgspec.Struct, frozen=True):
    """First to the child. `parent` is the process whose death ends the child."""

    tokenizer_path: str
    vocab_size: int | None
    memory_limit_bytes: int
    threads: int
    parent: int


class Ready(msgspec.Struct, frozen=True):
    """The child is warm."""

    fingerprint: str


class Job(msgspec.Struct, frozen=True):
    kind: str
    text: str
    whitespace: str
    backend: str


class Result(msgspec.Struct, frozen=True):
    """Either a payload, or the code, message and pointer of a refusal."""

    payload: bytes | None = None
    code: str = ""
    message: str = ""
    pointer: str | None = None


M = TypeVar("M", bound=msgspec.Struct)


def frame(message: msgspec.Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def body_length(prefix: bytes) -> int:
    """Raises ArtifactError: no frame of ours is that long."""
    length = int.from_bytes(prefix, "little")
    if length > MAX_FRAME_BYTES:
        raise ArtifactError("the compile child sent no frame of ours")
    return length


def read_frame(stream: BinaryIO, kind: type[M]) -> M | None:
    """The next message of a blocking stream, None at its end."""
    prefix = stream.read(LENGTH_BYTES)
    if len(prefix) < LENGTH_BYTES:
        return None
    return msgspec.msgpack.decode(stream.read(body_length(prefix)), type=kind)
