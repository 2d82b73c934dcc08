"""What the two ends of a connection say to each other. A frame is a list of messages: all that one end had to say at one time."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

WINDOW = 1 << 16
"""Characters of one answer that may be on their way, or wait to be read: a slow client costs no more memory than this, and one event."""


class Hello(msgspec.Struct, frozen=True):
    """The first frame of whoever connects: the receiver's own token, which only those know whom it has called."""

    token: str


class Head(msgspec.Struct, frozen=True, array_like=True, tag="h"):
    """See `model_service.replies.Head`."""

    answer: int
    status: int
    stream: bool


class Piece(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    """A part of an item of the answer; `more`: the item has further parts."""

    answer: int
    text: str
    more: bool = False


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="f"):
    """See `model_service.replies.Failure`."""

    answer: int
    code: str
    message: str
    pointer: str | None
    replica: str
    computing: bool


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """Nothing more comes: it is complete."""

    answer: int


class Read(msgspec.Struct, frozen=True, array_like=True):
    """The other way: so many more characters of an answer have been read."""

    answer: int
    characters: int


Said = Head | Piece | Failed | Ended
HELLO = msgspec.msgpack.Decoder(list[Hello])
SAID: msgspec.msgpack.Decoder[list[Said]] = msgspec.msgpack.Decoder(list[Said])
READ = msgspec.msgpack.Decoder(list[Read])


@dataclass(frozen=True, slots=True)
class Address:
    """Where a process takes answers in: `socket` is the name of an abstract Unix socket on the node, (`host`, `port`) is for all others."""

    node: str
    socket: str
    host: str
    port: int
    token: str


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Where one answer goes; `answer` is its number at the receiver."""

    address: Address
    answer: int
