"""What an engine core and the broadcaster of its node say to each other, over a Unix stream socket.

A message is a length, `uint32` little-endian, and msgpack. The engine's first one is its `Hello`, and from the `Welcome` on it sends one
`Step` a step; the broadcaster says that its frame has been published, and in between what has become of requests. The frame itself
stands in the ring that the `Welcome` names.
"""

from __future__ import annotations

import msgspec

from model_service.shared_memory import MemoryAddress

VERSION = 2


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """`engine`: a name for logs. `fingerprint`: the tokenizer's. `channel`: where the engine's artifacts are fetched. `most_rows`: masks
    that one step can have. `vocabulary` is set by the client: memory with what `GrammarTokenizer.portable` made."""

    version: int
    engine: str
    vocab_size: int
    fingerprint: str
    channel: str
    most_rows: int
    vocabulary: MemoryAddress | None = None


class Begun(msgspec.Struct, frozen=True, array_like=True):
    """`slot`: the engine's number for the request, used once. `stops` None: the tokenizer's stop tokens. `tokens`: what the grammar has
    taken so far."""

    slot: int
    key: str
    stops: tuple[int, ...] | None
    tokens: list[int]


class Step(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """To be taken in this order: `ended`, `begun`, `tokens` (slot, tokens), then masks for `rows` (slot, drafts), which are one more than
    the drafts each. `number` counts up without gaps from 0 and is the sequence number of the frame; without rows there is none.
    `late`: frames that did not come in time, since the last step."""

    number: int
    ended: list[int]
    begun: list[Begun]
    tokens: list[tuple[int, list[int]]]
    rows: list[tuple[int, list[int]]]
    late: int


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=True):
    ring: MemoryAddress


class Published(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What has come of the rows of the step `number`: a frame of that many bytes, or none, 0. Of steps that have been overtaken by another
    nothing is said."""

    number: int
    size_bytes: int


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Masks of these may be asked for."""

    slots: list[int]


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """There will be no masks of these: their artifacts cannot be had, or their grammars do not allow their tokens."""

    slots: list[int]


FromEngine = Hello | Step
FromBroadcaster = Welcome | Published | Ready | Failed
FROM_ENGINE: msgspec.msgpack.Decoder[FromEngine] = msgspec.msgpack.Decoder(FromEngine)
FROM_BROADCASTER: msgspec.msgpack.Decoder[FromBroadcaster] = msgspec.msgpack.Decoder(FromBroadcaster)
