"""Messages of the sandbox, as MessagePack.

The nursery and its zygote exchange one message a packet (a SEQPACKET socket keeps them apart), a slot and its child frames of a
4-byte little-endian length and a body.
"""

from __future__ import annotations

import socket
from typing import BinaryIO, TypeVar

import msgspec

from grammar_service.backends import CompiledPayload
from grammar_service.errors import ArtifactError
from grammar_service.limits import Limits
from grammar_service.messages import Refusal, Stopgap
from grammar_service.relaxation import Relax
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource
from grammar_service.warning import ConstraintWarning

LENGTH_BYTES = 4
MAX_PACKET_BYTES = 64 * 1024


class Setup(msgspec.Struct, frozen=True):
    """First to the zygote. `parent` is the process whose death ends it; `limits` are those of a spec, the others those of one child.
    `canonical`: make the tables of the tokenizer's own sequences ahead."""

    tokenizer: TokenizerSource
    limits: Limits
    memory_limit_bytes: int
    output_limit_bytes: int
    threads: int
    parent: int
    canonical: bool = False


class Ready(msgspec.Struct, frozen=True):
    """The zygote is warm. `unconfined` says why its children are not kept from files and sockets; None: they are."""

    fingerprint: str
    unconfined: str | None = None


class Order(msgspec.Struct, frozen=True):
    """To the zygote: fork a child that answers on the socket sent along (`reap` None), kill one and wait for its end, or make the `tables`
    of the tokenizer's own sequences, for all children that are forked after that.

    A child in the `background` gives way to every other process of the machine.
    """

    reap: int | None = None
    background: bool = False
    tables: bool = False


class Done(msgspec.Struct, frozen=True):
    """From the zygote: the child's process id, its own one for `tables`."""

    pid: int


class Job(msgspec.Struct, frozen=True, tag=True):
    """What to do with one spec: compile it on `backend`, whose name None means that it is only to be resolved, without what `relax` says.
    `library_source` is what the backend's library is to be given for it; where somebody has written that,
    the spec has been checked and has its key."""

    spec: GrammarSpec
    backend: str | None
    library_source: str | None = None
    relax: Relax = Relax.NOTHING


class Judging(msgspec.Struct, frozen=True, tag=True):
    """Judge answers by the JSON Schema of a spec."""

    spec: GrammarSpec
    answers: tuple[str, ...]


Task = Job | Judging


class Payload(msgspec.Struct, frozen=True, tag=True):
    """A compiled spec, and the key that it has for the child, None where it was told what to compile."""

    key: str | None
    payload: CompiledPayload


class Resolved(msgspec.Struct, frozen=True, tag=True):
    """A `Resolution`; without its spec where that is the one that was asked about."""

    key: str
    backend: str
    stopgap: Stopgap | None
    library_source: str | None
    warnings: tuple[ConstraintWarning, ...]
    relaxed: GrammarSpec | None = None
    left_out: tuple[str, ...] = ()


class Judged(msgspec.Struct, frozen=True, tag=True):
    """What is wrong with each answer, None where nothing is."""

    faults: tuple[str | None, ...]


class Refused(msgspec.Struct, frozen=True, tag=True):
    refusal: Refusal


Result = Payload | Resolved | Judged | Refused


M = TypeVar("M")


def frame(message: msgspec.Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def body_length(prefix: bytes, limit: int) -> int:
    """Raises ArtifactError: over the limit, so no frame of ours."""
    length = int.from_bytes(prefix, "little")
    if length > limit:
        raise ArtifactError("the compile child sent no frame of ours")
    return length


def read_task(stream: BinaryIO) -> Task | None:
    """The next task of a blocking stream, None at its end."""
    prefix = stream.read(LENGTH_BYTES)
    if len(prefix) < LENGTH_BYTES:
        return None
    task: Task = msgspec.msgpack.decode(stream.read(int.from_bytes(prefix, "little")), type=Task)
    return task


def read_packet(channel: socket.socket, kind: type[M]) -> tuple[M, list[int]] | None:
    """The next message of a blocking socket with the descriptors sent along, None when the other end is gone."""
    data, descriptors, _, _ = socket.recv_fds(channel, MAX_PACKET_BYTES, 1)
    return (msgspec.msgpack.decode(data, type=kind), descriptors) if data else None
